# How a folder becomes a target. A folder's include root contains only a link to that folder, so a target sees the headers of the folders
# that it links and no others: an include of a higher layer does not compile.
add_library(vgpu_warnings INTERFACE)  # for build tools; everything else uses vgpu_options
# GCC 12 gives false warnings about uninitialized and overflowing memory inside inlined std::vector, std::string and kj::Maybe.
target_compile_options(vgpu_warnings INTERFACE
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-stringop-overflow;-Wno-array-bounds>")
target_compile_options(vgpu_warnings INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers)
add_library(vgpu_options INTERFACE)
target_link_libraries(vgpu_options INTERFACE vgpu_warnings)
target_compile_options(vgpu_options INTERFACE $<$<CONFIG:Debug>:-O0> -g1)
# Lets --gc-sections drop an unused function or table even if others of its source are used.
target_compile_options(vgpu_options INTERFACE -ffunction-sections -fdata-sections)
if(VGPU_SANITIZE)
  # Enumerations come from callers of a C interface: any value is possible, and the code itself must refuse invalid ones. Address sanitizer
  # finds accesses through null pointers, beyond objects or to dead objects when they happen; checking before each access in addition makes
  # compilation take half as long again.
  target_compile_options(vgpu_options INTERFACE -fsanitize=${VGPU_SANITIZE} -fno-sanitize=enum,null,object-size,vptr
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(vgpu_options INTERFACE -fsanitize=${VGPU_SANITIZE})
else()
  # Relative relocations need glibc 2.36, which the README requires. Each separately mapped part of a file begins at a new page: this saves
  # one.
  target_link_options(vgpu_options INTERFACE -static-libstdc++ -static-libgcc -Wl,--gc-sections,-z,pack-relative-relocs,-z,noseparate-code)
endif()

# vgpu_precompiled(TARGET [HEADERS NAME] [OPTIONS TARGET]): compiles TARGET with precompiled headers, those that most of its files include:
# tools/build/NAME.h (default: precompiled). They are parsed once for all targets with the same options: those of the folder and of the
# target OPTIONS.
function(vgpu_precompiled target)
  cmake_parse_arguments(arg "" "HEADERS;OPTIONS" "" ${ARGN})
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    return()
  endif()
  if(NOT arg_HEADERS)
    set(arg_HEADERS precompiled)
  endif()
  get_directory_property(folder_options COMPILE_OPTIONS)
  string(MAKE_C_IDENTIFIER "vgpu_${arg_HEADERS}${folder_options}${arg_OPTIONS}" shared)
  if(NOT TARGET ${shared})
    add_library(${shared} OBJECT "${CMAKE_SOURCE_DIR}/tools/build/precompiled.cc")
    target_link_libraries(${shared} PRIVATE vgpu_options ${arg_OPTIONS} ${VGPU_${arg_HEADERS}_LIBRARIES})
    target_precompile_headers(${shared} PRIVATE "${CMAKE_SOURCE_DIR}/tools/build/${arg_HEADERS}.h")
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")  # -fPIE would be a different option
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${shared})
endfunction()
set(VGPU_precompiled-rpc_LIBRARIES vgpu_control_schema CapnProto::capnp-rpc CapnProto::kj-async)

# vgpu_folder(NAME): the include root of the source folder NAME, as the target vgpu_root_NAME with _ for /.
function(vgpu_folder name)
  string(REPLACE "/" "_" id "${name}")
  if(TARGET vgpu_root_${id})
    return()
  endif()
  set(root "${CMAKE_BINARY_DIR}/roots/${id}")
  cmake_path(GET name PARENT_PATH parent)
  file(MAKE_DIRECTORY "${root}/${parent}")
  file(CREATE_LINK "${CMAKE_SOURCE_DIR}/${name}" "${root}/${name}" SYMBOLIC)
  add_library(vgpu_root_${id} INTERFACE)
  target_include_directories(vgpu_root_${id} INTERFACE "${root}")
endfunction()

# vgpu_library(NAME FOLDER [EXCEPT FILE] [HEADERS NAME] [OPTIONS TARGET] [SUBFOLDERS NAMES...] sources...): a static library of the sources
# in FOLDER, which becomes an include root, and of other sources; without FILE, which has a program's main(); compiled with the options of
# TARGET, and with the precompiled headers NAME (vgpu_precompiled).
function(vgpu_library name folder)
  cmake_parse_arguments(arg "" "EXCEPT;HEADERS;OPTIONS" "SUBFOLDERS" ${ARGN})
  set(patterns "${CMAKE_SOURCE_DIR}/${folder}/*.cc")
  foreach(sub ${arg_SUBFOLDERS})
    list(APPEND patterns "${CMAKE_SOURCE_DIR}/${folder}/${sub}/*.cc")
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(arg_EXCEPT)
    list(REMOVE_ITEM sources "${CMAKE_SOURCE_DIR}/${folder}/${arg_EXCEPT}")
  endif()
  vgpu_folder(${folder})
  add_library(${name} STATIC ${sources} ${arg_UNPARSED_ARGUMENTS})
  string(REPLACE "/" "_" root "vgpu_root_${folder}")
  target_link_libraries(${name} PUBLIC ${root} PRIVATE vgpu_options ${arg_OPTIONS})
  target_link_libraries(${name} INTERFACE vgpu_options)
  vgpu_precompiled(${name} HEADERS "${arg_HEADERS}" OPTIONS "${arg_OPTIONS}")
endfunction()

# vgpu_together(TARGETS...): compiles several sources of a target at once, which halves the time, because headers are parsed and templates
# instantiated once. Not in a debug build, where a changed source should be compiled alone, with its own includes.
function(vgpu_together)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# vgpu_install(FOLDER TARGETS...): installs TARGETS in FOLDER; libraries also under the names without a version by which some programs open
# them. The target `installed` builds everything that is installed.
add_custom_target(installed)
function(vgpu_install folder)
  install(TARGETS ${ARGN} RUNTIME DESTINATION ${folder} LIBRARY DESTINATION ${folder})
  add_dependencies(installed ${ARGN})
endfunction()

# vgpu_is_sampled(NAME RESULT): with a sanitizer, which takes ten times as long, runs only every second case and every fourth program in a
# flavour, selected by name and VGPU_SEED; units, campaigns and multi-threaded tests always run. `ctest -C forced` runs all.
set(VGPU_SEED 0 CACHE STRING "which tests the sample of a sanitizer has")
function(vgpu_is_sampled name result)
  set(every 1)
  if(VGPU_SANITIZE AND NOT name MATCHES "^unit/|campaign|threads|families|crowded|garbage")
    set(every 4)
    if(name MATCHES "^control/")
      set(every 2)
    endif()
  endif()
  string(MD5 hash "${VGPU_SEED}${name}")
  string(SUBSTRING ${hash} 0 4 number)
  math(EXPR rest "0x${number} % ${every}")
  if(rest EQUAL 0)
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# vgpu_add_test(NAME COMMAND...): a CTest test; one that tests/known-failures lists must fail (tests/expect-failure).
set(VGPU_KNOWN_FAILURES "${CMAKE_SOURCE_DIR}/tests/known-failures")
set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${VGPU_KNOWN_FAILURES}")
file(STRINGS "${VGPU_KNOWN_FAILURES}" vgpu_known_failures REGEX "^[^#]")
list(TRANSFORM vgpu_known_failures REPLACE "\t.*" "")
function(vgpu_add_test name)
  set(expectation)
  set_property(GLOBAL APPEND PROPERTY vgpu_tests ${name})
  if(name IN_LIST vgpu_known_failures)
    set(expectation "${CMAKE_SOURCE_DIR}/tests/expect-failure" ${name} "${VGPU_KNOWN_FAILURES}")
  endif()
  vgpu_is_sampled(${name} sampled)
  set(when)
  if(NOT sampled AND NOT "CONFIGURATIONS" IN_LIST ARGN)
    set(when CONFIGURATIONS forced)
  endif()
  add_test(NAME ${name} COMMAND ${expectation} ${ARGN} ${when})
endfunction()

# vgpu_check_known_failures(): call it after the last test; checks that the list names only existing tests.
function(vgpu_check_known_failures)
  get_property(tests GLOBAL PROPERTY vgpu_tests)
  foreach(name ${vgpu_known_failures})
    if(NOT name IN_LIST tests)
      message(FATAL_ERROR "${VGPU_KNOWN_FAILURES} lists ${name}, and there is no such test")
    endif()
  endforeach()
endfunction()

# vgpu_test(NAME SOURCES files... LIBRARIES targets... [HEADERS NAME] [APART]): a doctest executable, as one CTest test. Its own code is not
# optimized, because compiling it takes longer than running it. With APART, each source is compiled separately.
function(vgpu_test name)
  cmake_parse_arguments(arg "APART" "HEADERS" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT arg_HEADERS)
    set(arg_HEADERS precompiled-test)
  endif()
  if(NOT TARGET vgpu_test_main)  # doctest's own code, compiled once
    add_library(vgpu_test_options INTERFACE)
    target_compile_options(vgpu_test_options INTERFACE $<$<NOT:$<CONFIG:Debug>>:-O0>)
    add_library(vgpu_test_main OBJECT ${CMAKE_SOURCE_DIR}/tests/main.cc)
    target_link_libraries(vgpu_test_main PRIVATE vgpu_options vgpu_test_options)
  endif()
  add_executable(${name} ${arg_SOURCES} $<TARGET_OBJECTS:vgpu_test_main>)
  target_link_libraries(${name} PRIVATE vgpu_options vgpu_test_options ${arg_LIBRARIES} Threads::Threads)
  vgpu_precompiled(${name} HEADERS ${arg_HEADERS} OPTIONS vgpu_test_options)
  if(NOT arg_APART)
    vgpu_together(${name})
  endif()
  vgpu_add_test(unit/${name} $<TARGET_FILE:${name}>)
  set_tests_properties(unit/${name} PROPERTIES LABELS unit)
endfunction()
