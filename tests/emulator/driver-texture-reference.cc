// Texture and surface references. The expected results are driver 580's on an H100, except for destroyed handles, which crash the driver.
#include <array>
#include <atomic>
#include <numeric>

#include "driver-fixture.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace vgpu::test;

namespace {

// Kernel `name`(p), which stores %o of thread t to p + 4 t.
std::string kernelOfWords(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + R"((.param .u64 p) {
    .reg .b64 %o, %a; .reg .b32 %t, %x, %r<4>; .reg .f32 %f<5>; ld.param.u64 %o, [p];
    mov.u32 %t, %tid.x; mul.wide.u32 %a, %t, 4; add.u64 %o, %o, %a;)" + body + " ret; }\n";
}

// line(p), plane(p), bytes(p): thread t reads element t of a line, position (t / 4 + 1/2, 1/2) of an image, element t of a line as
// integers. get(p): element t of the surface's second row. ask(p): the extents of both. put(from): thread t writes from + t to element t of
// the surface's second row.
std::string kernelsOfReferences() {
  return R"(.version 8.0
.target sm_75
.address_size 64
.global .texref tex;
.global .surfref surf;
.visible .global .align 4 .u32 plain;
.visible .entry put(.param .u32 from) {
  .reg .b32 %t, %x, %v; mov.u32 %t, %tid.x; shl.b32 %x, %t, 2; ld.param.u32 %v, [from]; add.u32 %v, %v, %t;
  sust.b.2d.b32.trap [surf, {%x, 1}], {%v}; ret;
}
)" + kernelOfWords("line", "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [tex, {%t}]; st.global.f32 [%o], %f0;") +
         kernelOfWords("plane", R"(cvt.rn.f32.u32 %f4, %t; fma.rn.f32 %f4, %f4, 0f3e800000, 0f3f000000;
           tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tex, {%f4, 0f3f000000}]; st.global.f32 [%o], %f0;)") +
         kernelOfWords("bytes", "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [tex, {%t}]; st.global.u32 [%o], %r0;") +
         kernelOfWords("get", "shl.b32 %x, %t, 2; suld.b.2d.b32.trap {%r0}, [surf, {%x, 1}]; st.global.u32 [%o], %r0;") +
         kernelOfWords("ask", R"(txq.width.b32 %r0, [tex]; txq.height.b32 %r1, [tex]; suq.width.b32 %r2, [surf];
           suq.height.b32 %r3, [surf]; st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};)");
}

// Floats numbered from one, 64 per row, four rows.
struct Bindings : Device {
  CUmodule module = load(kernelsOfReferences().c_str());
  CUtexref texture = nullptr;
  CUsurfref surface = nullptr;
  CUdeviceptr memory = allocate(8192), out = allocate(256);
  std::vector<float> numbers = std::vector<float>(256);
  size_t offset = 77;

  Bindings() {
    REQUIRE_CUDA(cuModuleGetTexRef(&texture, module, "tex"));
    REQUIRE_CUDA(cuModuleGetSurfRef(&surface, module, "surf"));
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    REQUIRE_CUDA(cuMemcpyHtoD(memory, numbers.data(), 1024));
  }
  CUarray array(unsigned flags = 0, CUarray_format format = CU_AD_FORMAT_FLOAT) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{64, 4, 0, format, 1, flags};
    CUarray made = nullptr;
    REQUIRE_CUDA(cuArray3DCreate(&made, &descriptor));
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = numbers.data();
    copy.srcPitch = copy.WidthInBytes = 256;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = made;
    copy.Height = 4;
    REQUIRE_CUDA(cuMemcpy2D(&copy));
    return made;
  }
  template <class T = float>
  std::vector<T> results(size_t count = 4) {
    std::vector<T> values(count);
    REQUIRE_CUDA(cuMemcpyDtoH(values.data(), out, count * sizeof(T)));
    return values;
  }
  template <class T = float>
  std::vector<T> read(const char* kernel, unsigned threads = 4) {
    REQUIRE_CUDA(cuMemsetD8(out, 0xff, 256));
    REQUIRE_CUDA(launch(function(module, kernel), nullptr, threads, out));
    REQUIRE_CUDA(cuCtxSynchronize());
    return results<T>();
  }
};

// Results of GetAddress, GetArray and GetMipmappedArray.
std::array<CUresult, 3> boundTo(CUtexref reference) {
  CUdeviceptr address = 0;
  CUarray array = nullptr;
  CUmipmappedArray levels = nullptr;
  return {cuTexRefGetAddress(&address, reference), cuTexRefGetArray(&array, reference), cuTexRefGetMipmappedArray(&levels, reference)};
}
constexpr CUresult yes = CUDA_SUCCESS, no = CUDA_ERROR_INVALID_VALUE;

void checkFresh(CUtexref reference) {
  CUarray_format format{};
  int channels = 0, anisotropy = 9;
  CUfilter_mode filter = CU_TR_FILTER_MODE_LINEAR, mipmap = CU_TR_FILTER_MODE_LINEAR;
  float bias = 9, least = 9, most = 9;
  std::array<float, 4> border{9, 9, 9, 9};
  unsigned flags = 9;
  CHECK_CUDA(cuTexRefGetFormat(&format, &channels, reference));
  CHECK_CUDA(cuTexRefGetFilterMode(&filter, reference));
  CHECK_CUDA(cuTexRefGetMipmapFilterMode(&mipmap, reference));
  CHECK_CUDA(cuTexRefGetMipmapLevelBias(&bias, reference));
  CHECK_CUDA(cuTexRefGetMipmapLevelClamp(&least, &most, reference));
  CHECK_CUDA(cuTexRefGetMaxAnisotropy(&anisotropy, reference));
  CHECK_CUDA(cuTexRefGetBorderColor(border.data(), reference));
  CHECK_CUDA(cuTexRefGetFlags(&flags, reference));
  CHECK_EQ(format, CU_AD_FORMAT_FLOAT);
  CHECK_EQ(channels, 1);
  CHECK_EQ(filter, CU_TR_FILTER_MODE_POINT);
  CHECK_EQ(mipmap, CU_TR_FILTER_MODE_POINT);
  CHECK_EQ(bias + least + most, 0);
  CHECK_EQ(anisotropy, 0);
  CHECK_EQ(border, std::array<float, 4>{});
  CHECK_EQ(flags, 0);
  for (int axis = -1; axis <= 3; ++axis) {
    auto mode = static_cast<CUaddress_mode>(9);
    const bool exists = axis >= 0 && axis < 3;
    CHECK_EQ(cuTexRefGetAddressMode(&mode, reference, axis), exists ? yes : no);
    CHECK_EQ(mode, exists ? CU_TR_ADDRESS_MODE_CLAMP : static_cast<CUaddress_mode>(9));
  }
  CHECK_EQ(boundTo(reference), std::array{no, no, no});
}

void waitForRelease(void* released) { static_cast<std::atomic<int>*>(released)->wait(0); }

}  // namespace

TEST_CASE("a new texture reference has the default settings, also one of a module") {
  Bindings bindings;
  CUtexref reference = nullptr;
  REQUIRE_CUDA(cuTexRefCreate(&reference));
  checkFresh(reference);
  checkFresh(bindings.texture);
  CHECK_ANSWER(cuTexRefCreate(nullptr), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuTexRefDestroy(reference));
  CHECK_ANSWER(cuTexRefDestroy(reference), CUDA_ERROR_INVALID_HANDLE);
  CHECK_ANSWER(cuTexRefDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
  CUcontext context = nullptr;
  REQUIRE_CUDA(cuCtxPopCurrent(&context));
  CHECK_ANSWER(cuTexRefCreate(&reference), CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE_CUDA(cuCtxPushCurrent(context));
}

TEST_CASE("a texture reference keeps its settings, and refuses those that the driver refuses") {
  Bindings bindings;
  const CUtexref r = bindings.texture;
  CUarray_format format{};
  int channels = 0, anisotropy = 0;
  CHECK_ANSWER(cuTexRefSetFormat(r, CU_AD_FORMAT_HALF, 3), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuTexRefSetFormat(nullptr, CU_AD_FORMAT_HALF, 1), CUDA_ERROR_INVALID_HANDLE);
  CHECK_CUDA(cuTexRefSetFormat(r, static_cast<CUarray_format>(99), 2));
  CHECK_CUDA(cuTexRefGetFormat(&format, nullptr, r));
  CHECK_CUDA(cuTexRefGetFormat(nullptr, &channels, r));
  CHECK_EQ(format, static_cast<CUarray_format>(99));
  CHECK_EQ(channels, 2);

  CUaddress_mode mode{};
  CHECK_ANSWER(cuTexRefSetAddressMode(r, 3, CU_TR_ADDRESS_MODE_WRAP), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuTexRefSetAddressMode(r, -1, CU_TR_ADDRESS_MODE_WRAP), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuTexRefSetAddressMode(r, 1, CU_TR_ADDRESS_MODE_MIRROR));
  CHECK_CUDA(cuTexRefGetAddressMode(&mode, r, 1));
  CHECK_EQ(mode, CU_TR_ADDRESS_MODE_MIRROR);
  CHECK_CUDA(cuTexRefSetAddressMode(r, 1, static_cast<CUaddress_mode>(7)));
  CHECK_CUDA(cuTexRefGetAddressMode(&mode, r, 1));
  CHECK_EQ(mode, CU_TR_ADDRESS_MODE_CLAMP);

  CUfilter_mode filter{};
  CHECK_CUDA(cuTexRefSetFilterMode(r, static_cast<CUfilter_mode>(2)));
  CHECK_CUDA(cuTexRefGetFilterMode(&filter, r));
  CHECK_EQ(filter, static_cast<CUfilter_mode>(2));
  CHECK_CUDA(cuTexRefSetMipmapFilterMode(r, CU_TR_FILTER_MODE_LINEAR));
  CHECK_ANSWER(cuTexRefSetMipmapFilterMode(r, static_cast<CUfilter_mode>(2)), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuTexRefGetMipmapFilterMode(&filter, r));
  CHECK_EQ(filter, CU_TR_FILTER_MODE_LINEAR);

  float bias = 0, least = 0, most = 0;
  CHECK_CUDA(cuTexRefSetMipmapLevelBias(r, 0.5f));
  CHECK_CUDA(cuTexRefGetMipmapLevelBias(&bias, r));
  CHECK_EQ(bias, 0.5f);
  CHECK_CUDA(cuTexRefSetMipmapLevelClamp(r, 1, 2));
  CHECK_CUDA(cuTexRefGetMipmapLevelClamp(&least, &most, r));
  CHECK_EQ(least, 1);
  CHECK_EQ(most, 2);
  CHECK_CUDA(cuTexRefSetMaxAnisotropy(r, 99));
  CHECK_CUDA(cuTexRefGetMaxAnisotropy(&anisotropy, r));
  CHECK_EQ(anisotropy, 99);

  std::array<float, 4> border{1, 2, 3, 4}, read{};
  CHECK_CUDA(cuTexRefSetBorderColor(r, border.data()));
  CHECK_ANSWER(cuTexRefSetBorderColor(r, nullptr), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuTexRefGetBorderColor(read.data(), r));
  CHECK_EQ(read, border);

  unsigned flags = 0;
  CHECK_CUDA(cuTexRefSetFlags(r, 0x33));
  CHECK_ANSWER(cuTexRefSetFlags(r, 0x40), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuTexRefSetFlags(r, 0x80000000), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuTexRefGetFlags(&flags, r));
  CHECK_EQ(flags, 0x33);
  CHECK_ANSWER(cuTexRefGetFlags(nullptr, r), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuTexRefGetFlags(&flags, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a texture reference can be asked what it is bound to") {
  Bindings bindings;
  const CUtexref r = bindings.texture;
  CUdeviceptr address = 0;
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, r, bindings.memory, 4096));
  CHECK_EQ(bindings.offset, 0);
  CHECK_EQ(boundTo(r), std::array{yes, no, no});
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, r, bindings.memory + 516, 128));
  CHECK_EQ(bindings.offset, 4);
  CHECK_CUDA(cuTexRefGetAddress(&address, r));
  CHECK_EQ(address, bindings.memory + 512);
  CHECK_ANSWER(cuTexRefSetAddress(nullptr, r, bindings.memory + 4, 128), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuTexRefSetAddress(nullptr, r, bindings.memory, 0));
  CHECK_ANSWER(cuTexRefSetAddress(nullptr, r, bindings.memory, size_t{1} << 40), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuTexRefSetAddress(&bindings.offset, r, 64, 4096), CUDA_SUCCESS);  // a kernel that reads it faults
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, r, 0, 0));
  CHECK_CUDA(cuTexRefGetAddress(&address, r));
  CHECK_EQ(address, 0);

  CUDA_ARRAY_DESCRIPTOR rows{32, 4, CU_AD_FORMAT_UNSIGNED_INT8, 4};
  CUarray_format format{};
  int channels = 0;
  CHECK_CUDA(cuTexRefSetAddress2D(r, &rows, bindings.memory, 512));
  CHECK_CUDA(cuTexRefGetAddress(&address, r));
  CHECK_EQ(address, bindings.memory);
  CHECK_CUDA(cuTexRefGetFormat(&format, &channels, r));
  CHECK_EQ(format, CU_AD_FORMAT_UNSIGNED_INT8);
  CHECK_EQ(channels, 4);
  CHECK_ANSWER(cuTexRefSetAddress2D(r, &rows, bindings.memory + 4, 512), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuTexRefSetAddress2D(r, &rows, bindings.memory, 96), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuTexRefSetAddress2D(r, &rows, bindings.memory, 132), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuTexRefSetAddress2D(r, nullptr, bindings.memory, 512), CUDA_ERROR_INVALID_VALUE);

  const CUarray array = bindings.array();
  CUarray found = nullptr;
  CHECK_ANSWER(cuTexRefSetArray(r, nullptr, CU_TRSA_OVERRIDE_FORMAT), CUDA_ERROR_INVALID_HANDLE);
  CHECK_ANSWER(cuTexRefSetArray(r, array, 2), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(boundTo(r), std::array{yes, no, no});
  CHECK_CUDA(cuTexRefSetArray(r, array, 0));
  CHECK_CUDA(cuTexRefGetFormat(&format, &channels, r));
  CHECK_EQ(format, CU_AD_FORMAT_UNSIGNED_INT8);
  CHECK_CUDA(cuTexRefSetArray(r, array, CU_TRSA_OVERRIDE_FORMAT));
  CHECK_CUDA(cuTexRefGetFormat(&format, &channels, r));
  CHECK_EQ(format, CU_AD_FORMAT_FLOAT);
  CHECK_EQ(channels, 1);
  CHECK_EQ(boundTo(r), std::array{no, yes, no});
  CHECK_CUDA(cuTexRefGetArray(&found, r));
  CHECK_EQ(found, array);
  CHECK_CUDA(cuArrayDestroy(array));
  CHECK_EQ(boundTo(r), std::array{no, no, no});

  CUDA_ARRAY3D_DESCRIPTOR descriptor{64, 4, 0, CU_AD_FORMAT_HALF, 2, 0};
  CUmipmappedArray levels = nullptr;
  REQUIRE_CUDA(cuMipmappedArrayCreate(&levels, &descriptor, 3));
  CHECK_CUDA(cuTexRefSetMipmappedArray(r, levels, CU_TRSA_OVERRIDE_FORMAT));
  CHECK_CUDA(cuTexRefGetFormat(&format, &channels, r));
  CHECK_EQ(format, CU_AD_FORMAT_HALF);
  CHECK_EQ(channels, 2);
  CHECK_EQ(boundTo(r), std::array{no, no, yes});
  CHECK_CUDA(cuMipmappedArrayDestroy(levels));
  CHECK_EQ(boundTo(r), std::array{no, no, no});
}

TEST_CASE("a module has the references that its text declares, and they end with the module") {
  Bindings bindings;
  CUtexref again = nullptr;
  CUsurfref surface = nullptr;
  CHECK_CUDA(cuModuleGetTexRef(&again, bindings.module, "tex"));
  CHECK_EQ(again, bindings.texture);
  CHECK_CUDA(cuModuleGetSurfRef(&surface, bindings.module, "surf"));
  CHECK_EQ(surface, bindings.surface);
  for (const char* name : {"none", "line", "surf", "plain"})
    CHECK_ANSWER(cuModuleGetTexRef(&again, bindings.module, name), CUDA_ERROR_NOT_FOUND);
  CHECK_ANSWER(cuModuleGetSurfRef(&surface, bindings.module, "tex"), CUDA_ERROR_NOT_FOUND);
  CHECK_ANSWER(cuModuleGetTexRef(&again, bindings.module, nullptr), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuModuleGetTexRef(nullptr, bindings.module, "tex"), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr address = 0;
  size_t bytes = 0;
  CHECK_CUDA(cuModuleGetGlobal(&address, &bytes, bindings.module, "plain"));
  CHECK_ANSWER(cuModuleGetGlobal(&address, &bytes, bindings.module, "tex"), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuModuleGetGlobal(&address, &bytes, bindings.module, "surf"), CUDA_ERROR_INVALID_VALUE);

  CHECK_CUDA(cuTexRefDestroy(bindings.texture));
  CHECK_CUDA(cuModuleGetTexRef(&again, bindings.module, "tex"));
  CHECK_NE(again, bindings.texture);
  checkFresh(again);
  CHECK_CUDA(cuModuleUnload(bindings.module));
  unsigned flags = 0;
  CUarray array = nullptr;
  CHECK_ANSWER(cuTexRefGetFlags(&flags, again), CUDA_ERROR_INVALID_HANDLE);
  CHECK_ANSWER(cuSurfRefGetArray(&array, bindings.surface), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a library's module has references, which end with the library") {
  Device device;
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  CUtexref texture = nullptr;
  CUdeviceptr address = 0;
  unsigned flags = 0;
  REQUIRE_CUDA(cuLibraryLoadData(&library, kernelsOfReferences().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  REQUIRE_CUDA(cuLibraryGetModule(&module, library));
  CHECK_CUDA(cuModuleGetTexRef(&texture, module, "tex"));
  CHECK_CUDA(cuTexRefGetFlags(&flags, texture));
  CHECK_ANSWER(cuLibraryGetGlobal(&address, nullptr, library, "tex"), CUDA_ERROR_NOT_FOUND);
  CHECK_CUDA(cuLibraryUnload(library));
  CHECK_ANSWER(cuTexRefGetFlags(&flags, texture), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a kernel reads linear memory through a reference, in the reference's format") {
  Bindings bindings;
  const CUtexref r = bindings.texture;
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, r, bindings.memory, 12));
  CHECK_EQ(bindings.read("line"), std::vector<float>{1, 2, 3, 0});
  CHECK_CUDA(cuTexRefSetFilterMode(r, CU_TR_FILTER_MODE_LINEAR));  // linear memory is not filtered
  CHECK_EQ(bindings.read("line"), std::vector<float>{1, 2, 3, 0});
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, r, bindings.memory + 8, 8));
  CHECK_EQ(bindings.read("line"), std::vector<float>{1, 2, 3, 4});
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, r, bindings.memory, 0));
  CHECK_EQ(bindings.read("line"), std::vector<float>{1, 0, 0, 0});
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, r, bindings.memory, 256));
  CHECK_CUDA(cuTexRefSetFormat(r, CU_AD_FORMAT_UNSIGNED_INT16, 1));
  CHECK_EQ(bindings.read("line"), std::vector<float>{0, 0x3f80 / 65535.0f, 0, 0x4000 / 65535.0f});
  CHECK_CUDA(cuTexRefSetFlags(r, CU_TRSF_READ_AS_INTEGER));
  CHECK_EQ(bindings.read<uint32_t>("bytes"), std::vector<uint32_t>{0, 0x3f80, 0, 0x4000});
  CHECK_CUDA(cuTexRefSetFormat(r, static_cast<CUarray_format>(99), 1));
  CHECK_EQ(bindings.read("line"), std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("a kernel reads an array and pitched memory through a reference, filtered if the reference asks for it") {
  Bindings bindings;
  const CUtexref r = bindings.texture;
  CHECK_CUDA(cuTexRefSetArray(r, bindings.array(), CU_TRSA_OVERRIDE_FORMAT));
  CHECK_EQ(bindings.read("plane"), std::vector<float>{1, 1, 2, 2});
  CHECK_CUDA(cuTexRefSetFilterMode(r, CU_TR_FILTER_MODE_LINEAR));
  CHECK_EQ(bindings.read("plane"), std::vector<float>{1, 1.25f, 1.5f, 1.75f});
  CHECK_CUDA(cuTexRefSetFlags(r, CU_TRSF_NORMALIZED_COORDINATES));  // 1/2 is between elements 31 and 32, rows 1 and 2
  CHECK_EQ(bindings.read("plane")[0], (96.5f + 160.5f) / 2);
  CHECK_CUDA(cuTexRefSetFlags(r, 0));

  // The array's integers are read as floats: the reference's format decides.
  CHECK_CUDA(cuTexRefSetArray(r, bindings.array(0, CU_AD_FORMAT_UNSIGNED_INT32), CU_TRSA_OVERRIDE_FORMAT));
  CHECK_EQ(bindings.read("plane"), std::vector<float>{1, 1, 2, 2});
  CHECK_CUDA(cuTexRefSetFormat(r, CU_AD_FORMAT_FLOAT, 1));
  CHECK_EQ(bindings.read("plane"), std::vector<float>{1, 1.25f, 1.5f, 1.75f});

  CUDA_ARRAY_DESCRIPTOR rows{32, 2, CU_AD_FORMAT_FLOAT, 1};
  CHECK_CUDA(cuTexRefSetAddress2D(r, &rows, bindings.memory + 512, 512));
  CHECK_EQ(bindings.read("plane"), std::vector<float>{129, 129.25f, 129.5f, 129.75f});
  CHECK_EQ(bindings.read<uint32_t>("ask", 1), std::vector<uint32_t>{32, 2, 0, 0});
}

TEST_CASE("a reference that was never bound reads as zeros, one that was unbound faults") {
  Bindings bindings;
  CHECK_EQ(bindings.read("line"), std::vector<float>{0, 0, 0, 0});
  CHECK_EQ(bindings.read("plane"), std::vector<float>{0, 0, 0, 0});
  CHECK_EQ(bindings.read("get"), std::vector<float>{0, 0, 0, 0});
  CHECK_EQ(bindings.read<uint32_t>("ask", 1), std::vector<uint32_t>{0, 0, 0, 0});
  bindings.module = bindings.load(kernelsOfReferences().c_str());  // a module whose references nobody has asked for
  CHECK_EQ(bindings.read("line"), std::vector<float>{0, 0, 0, 0});
  CHECK_EQ(bindings.read("get"), std::vector<float>{0, 0, 0, 0});

  REQUIRE_CUDA(cuModuleGetTexRef(&bindings.texture, bindings.module, "tex"));
  const CUarray array = bindings.array();
  CHECK_CUDA(cuTexRefSetArray(bindings.texture, array, 0));
  CHECK_CUDA(cuArrayDestroy(array));
  CHECK_EQ(bindings.read("plane"), std::vector<float>{0, 0, 0, 0});
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, bindings.texture, bindings.memory, 256));
  CHECK_EQ(bindings.read("line"), std::vector<float>{1, 2, 3, 4});
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, bindings.texture, 0, 0));
  CHECK_CUDA(launch(function(bindings.module, "line"), nullptr, 4, bindings.out));
  CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_ANSWER(cuTexRefSetFlags(bindings.texture, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("kernels see the binding at their launch") {
  Bindings bindings;
  const CUtexref r = bindings.texture;
  const CUfunction line = function(bindings.module, "line"), plane = function(bindings.module, "plane");
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::atomic<int> released{0};
  REQUIRE_CUDA(cuLaunchHostFunc(stream, waitForRelease, &released));
  const CUarray array = bindings.array();
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, r, bindings.memory, 256));
  CHECK_CUDA(launch(line, stream, 4, bindings.out));
  CHECK_CUDA(cuTexRefSetAddress(&bindings.offset, r, bindings.memory + 512, 256));
  CHECK_CUDA(launch(line, stream, 4, bindings.out + 16));
  CHECK_CUDA(cuTexRefSetArray(r, array, 0));
  CHECK_CUDA(launch(plane, stream, 4, bindings.out + 32));
  CHECK_CUDA(cuTexRefDestroy(r));
  CHECK_CUDA(launch(line, stream, 4, bindings.out + 48));
  released = 1;
  released.notify_all();
  CHECK_CUDA(cuArrayDestroy(array));
  CHECK_CUDA(cuCtxSynchronize());
  CHECK_EQ(bindings.results(16), std::vector<float>{1, 2, 3, 4, 129, 130, 131, 132, 1, 1, 2, 2, 0, 0, 0, 0});
  CHECK_CUDA(cuStreamDestroy(stream));
}

TEST_CASE("a kernel writes and reads an array through a surface reference") {
  Bindings bindings;
  const CUsurfref s = bindings.surface;
  const CUarray array = bindings.array(CUDA_ARRAY3D_SURFACE_LDST, CU_AD_FORMAT_UNSIGNED_INT32);
  CUarray found = nullptr;
  CHECK_ANSWER(cuSurfRefGetArray(&found, s), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuSurfRefSetArray(nullptr, array, 0), CUDA_ERROR_INVALID_HANDLE);
  CHECK_ANSWER(cuSurfRefSetArray(s, nullptr, 0), CUDA_ERROR_INVALID_HANDLE);
  CHECK_ANSWER(cuSurfRefSetArray(s, bindings.array(), 0), CUDA_ERROR_INVALID_VALUE);  // the array was not made for surfaces
  CHECK_ANSWER(cuSurfRefSetArray(s, array, 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(launch(function(bindings.module, "put"), nullptr, 4, uint32_t{70}));  // nothing is bound, so the write is lost
  CHECK_CUDA(cuSurfRefSetArray(s, array, 0));
  CHECK_CUDA(cuSurfRefGetArray(&found, s));
  CHECK_EQ(found, array);
  CHECK_EQ(bindings.read("get"), std::vector<float>{65, 66, 67, 68});
  CHECK_CUDA(launch(function(bindings.module, "put"), nullptr, 4, uint32_t{100}));
  CHECK_EQ(bindings.read<uint32_t>("get"), std::vector<uint32_t>{100, 101, 102, 103});
  CHECK_EQ(bindings.read<uint32_t>("ask", 1), std::vector<uint32_t>{0, 0, 64, 4});
  std::vector<uint32_t> row(64);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcY = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = row.data();
  copy.dstPitch = copy.WidthInBytes = 256;
  copy.Height = 1;
  REQUIRE_CUDA(cuMemcpy2D(&copy));
  CHECK_EQ(row[3], 103);
  CHECK_CUDA(cuArrayDestroy(array));
  CHECK_ANSWER(cuSurfRefGetArray(&found, s), CUDA_ERROR_INVALID_VALUE);
}
