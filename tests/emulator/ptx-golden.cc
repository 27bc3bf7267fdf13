// The interpreter compared with a real GPU: the same kernels, the same operands, all bits of the results.
#include <unordered_map>

#include "ptx-fixture.h"
#include "ptx-forms.h"

namespace vgpu::emulator {
namespace {

struct Golden {
  uint64_t digest;
  const char* text;
};
constexpr Golden goldenRows[] = {
#include "ptx-golden.inc"
};
constexpr Golden widerGoldenRows[] = {
#include "ptx-wider-golden.inc"
};

uint64_t digestOf(const Form& form) {
  Device device(formKernel(form));
  const uint64_t in = device.upload(formInputs(form)), out = device.upload(std::vector<uint64_t>(formThreads));
  device("k", {{formThreads / 256, 1, 1}, {256, 1, 1}}, in, out);
  return formDigest(device.download<uint64_t>(out, formThreads));
}

}  // namespace

TEST_CASE("every form of the arithmetic instructions gives the bits that a real GPU gives") {
  std::unordered_map<std::string, uint64_t> golden;
  for (const Golden& row : goldenRows) golden[row.text] = row.digest;
  const auto forms = allForms();
  CHECK(forms.size() + allWarpForms().size() == golden.size());
  for (const Form& form : forms) {
    CAPTURE(form.text);
    CHECK(digestOf(form) == golden[form.text]);
  }
}

TEST_CASE("forms that only hand-written PTX uses give the bits that a real GPU gives") {
  std::unordered_map<std::string, uint64_t> golden;
  for (const Golden& row : widerGoldenRows) golden[row.text] = row.digest;
  const auto forms = widerForms();
  CHECK(forms.size() == golden.size());
  for (const Form& form : forms) {
    CAPTURE(form.text);
    CHECK(digestOf(form) == golden[form.text]);
  }
}

TEST_CASE("every form of the whole-warp instructions gives the bits that a real GPU gives") {
  std::unordered_map<std::string, uint64_t> golden;
  for (const Golden& row : goldenRows) golden[row.text] = row.digest;
  for (const WarpForm& form : allWarpForms()) {
    CAPTURE(form.body);
    Device device(warpFormKernel(form));
    const uint64_t in = device.upload(warpFormInputs(form)), out = device.upload(std::vector<uint64_t>(size_t{32} * 8));
    device("k", {}, in, out);
    CHECK(formDigest(device.download<uint64_t>(out, size_t{32} * 8)) == golden[form.body]);
  }
}

TEST_CASE("a predicated form writes the lanes for which the predicate is true and no others") {
  const auto forms = allForms();
  for (size_t i = 0; i < forms.size(); i += 3) {
    Form form = forms[i];
    if (form.text.find(';') != std::string::npos) continue;
    CAPTURE(form.text);
    const auto inputs = formInputs(form);
    const auto run = [&](const std::string& text) {
      Device device(text);
      const uint64_t in = device.upload(inputs), out = device.upload(std::vector<uint64_t>(formThreads));
      device("k", {{formThreads / 256, 1, 1}, {256, 1, 1}}, in, out);
      return device.download<uint64_t>(out, formThreads);
    };
    const auto plain = run(formKernel(form));
    const std::string clear = form.result == "pred" ? "setp.ne.u32 D, 0, 0;\n" : "mov." + form.result + " D, 0;\n";
    form.text = ".reg .pred G; " + clear + "and.b32 %t5, %t0, 5; setp.eq.u32 G, %t5, 1;\n@G " + form.text;
    const auto guarded = run(formKernel(form));
    bool same = true;
    for (int t = 0; t < formThreads; ++t) same &= guarded[t] == ((t & 5) == 1 ? plain[t] : 0);
    CHECK(same);
  }
}

}  // namespace vgpu::emulator
