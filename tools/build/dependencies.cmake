# The packages that this project is built with. Everything except libc and libssl is linked statically into what is installed. The libraries
# that a program loads are shared objects, so static archives must be position-independent: Debian's archives of Cap'n Proto and LMDB are
# not, and tools/setup builds those two from Debian's sources.
list(PREPEND CMAKE_PREFIX_PATH "${VGPU_DEPS}/lmdb")
find_package(Threads REQUIRED)

set(capnp_folder "${VGPU_DEPS}/capnp-libraries")
function(vgpu_capnp_library name)
  add_library(CapnProto::${name} STATIC IMPORTED GLOBAL)
  set_target_properties(CapnProto::${name} PROPERTIES IMPORTED_LOCATION "${capnp_folder}/lib/lib${name}.a"
    INTERFACE_INCLUDE_DIRECTORIES "${capnp_folder}/include" INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()
vgpu_capnp_library(kj Threads::Threads)
vgpu_capnp_library(kj-async CapnProto::kj)
vgpu_capnp_library(capnp CapnProto::kj)
vgpu_capnp_library(capnp-rpc CapnProto::capnp CapnProto::kj-async)
find_program(VGPU_CAPNP capnp REQUIRED)
find_program(VGPU_CAPNPC capnpc-c++ REQUIRED)

function(vgpu_static_library name archive header)
  find_library(VGPU_${name}_ARCHIVE NAMES ${archive} REQUIRED)
  find_path(VGPU_${name}_INCLUDE NAMES ${header} REQUIRED)
  add_library(vgpu_${name} STATIC IMPORTED GLOBAL)
  set_target_properties(vgpu_${name} PROPERTIES IMPORTED_LOCATION "${VGPU_${name}_ARCHIVE}"
    INTERFACE_INCLUDE_DIRECTORIES "${VGPU_${name}_INCLUDE}")
endfunction()
vgpu_static_library(lmdb liblmdb.a lmdb.h)
vgpu_static_library(zstd libzstd.a zstd.h)
vgpu_static_library(lz4 liblz4.a lz4.h)
vgpu_static_library(crypto libcrypto.a openssl/sha.h)

# For connections to other hosts, which only vgpu-relay makes. Shared, so that the system's security updates apply.
find_package(OpenSSL 3 REQUIRED)

# fmt and spdlog are compiled here, once: Debian's archives of them are shared, and header-only use costs seconds a file.
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(VGPU_XXHASH_INCLUDE xxhash.h REQUIRED)
add_library(vgpu_fmt STATIC tools/build/fmt.cc)
get_target_property(fmt_include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(vgpu_fmt SYSTEM PUBLIC ${fmt_include})
add_library(vgpu_log STATIC tools/build/spdlog.cc)
get_target_property(spdlog_include spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(vgpu_log SYSTEM PUBLIC ${spdlog_include})
target_compile_definitions(vgpu_log PUBLIC SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
target_link_libraries(vgpu_log PUBLIC vgpu_fmt Threads::Threads)
add_library(vgpu_xxhash INTERFACE)
target_include_directories(vgpu_xxhash SYSTEM INTERFACE "${VGPU_XXHASH_INCLUDE}")
target_compile_definitions(vgpu_xxhash INTERFACE XXH_INLINE_ALL)

# The CUDA toolkit: headers for us, nvcc for the test programs. If tools/setup found none, it has put one into .deps.
if(EXISTS "${VGPU_DEPS}/cuda/bin/nvcc")
  set(VGPU_NVCC "${VGPU_DEPS}/cuda/bin/nvcc")
else()
  find_program(VGPU_NVCC nvcc PATHS /usr/local/cuda/bin REQUIRED)
endif()
file(REAL_PATH "${VGPU_NVCC}" nvcc_path)
cmake_path(GET nvcc_path PARENT_PATH nvcc_bin)
cmake_path(GET nvcc_bin PARENT_PATH VGPU_CUDA)
find_path(VGPU_CUDA_INCLUDE cuda.h PATHS "${VGPU_CUDA}/include" NO_DEFAULT_PATH REQUIRED)
find_library(VGPU_CUDART NAMES libcudart.so.13 PATHS "${VGPU_CUDA}/lib64" "${VGPU_CUDA}/lib" NO_DEFAULT_PATH REQUIRED)
# What test programs of CUDA 12 are built with; without it, there are no such tests.
find_path(VGPU_CUDA12_INCLUDE cuda_runtime_api.h PATHS "${VGPU_DEPS}/cuda12/include" NO_DEFAULT_PATH)
find_library(VGPU_CUDART12 NAMES libcudart.so.12 PATHS "${VGPU_DEPS}/cuda12/lib" NO_DEFAULT_PATH)
add_library(vgpu_cuda_headers INTERFACE)
target_include_directories(vgpu_cuda_headers SYSTEM INTERFACE "${VGPU_CUDA_INCLUDE}")
# Code that no CUDA call waits for is compiled for size.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(vgpu_log PRIVATE -Os)
endif()
