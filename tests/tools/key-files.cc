#include <doctest/doctest.h>
#include <kj/exception.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "../scratch-directory.h"
#include "tools/keys/identity.h"

namespace vgpu::keys {
namespace {

std::string refusal(const std::string& file) {
  auto caught = kj::runCatchingExceptions([&] { readIdentity(file); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getDescription().cStr();
  }
  return "";
}

std::string written(const std::string& path, const std::string& text, mode_t mode = 0600) {
  std::ofstream(path) << text;
  chmod(path.c_str(), mode);
  return path;
}

bool says(const std::string& text, const char* words) {
  CAPTURE(text);
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a file of keys is read as it was written") {
  test::ScratchDirectory folder;
  Pair authority = makeAuthority({"alice", {"laptop"}}, 30), own = issue(authority, {"alice", {"gpu-1", "10.0.0.2"}}, 30);
  Identity read = readIdentity(written(folder.path + "/i", textOf(own, authority.certificate.get())));
  CHECK(holderOf(*read.certificate) == "gpu-1 of alice");
  CHECK(issuerOf(*read.certificate) == "the CA of alice on laptop");
  CHECK(isFor(*read.certificate, "gpu-1"));
  CHECK(isFor(*read.certificate, "10.0.0.2"));
  CHECK(!isFor(*read.certificate, "gpu-2"));
  CHECK(!isFor(*read.certificate, "10.0.0.3"));
}

TEST_CASE("an invalid file of keys, or one that others can read or write, is refused with advice") {
  test::ScratchDirectory folder;
  const std::string path = folder.path + "/i";
  Pair authority = makeAuthority({"alice", {"laptop"}}, 30), own = issue(authority, {"alice", {"gpu-1"}}, 30);
  const std::string whole = textOf(own, authority.certificate.get());
  CHECK(says(refusal(path), "`vgpuctl keys init` makes"));
  CHECK(says(refusal(folder.path), "is not a file of keys"));
  CHECK(says(refusal(written(path, whole, 0644)), "is accessible to other users (mode 0644), so its keys may be known to them: chmod 600"));
  CHECK(says(refusal(written(path, "", 0600)), "has no readable private key"));
  CHECK(says(refusal(written(path, whole.substr(0, whole.size() / 2))), "certificate"));
  CHECK(says(refusal(written(path, textOf(own, nullptr))), "has 1 certificates: it must have its own, and then the CA's"));
  CHECK(says(refusal(written(path, textOf({std::move(authority.certificate), std::move(own.key)}, nullptr))),
             "has no certificate for its private key"));
  written(path, whole);
  CHECK(refusal(path) == "");
  chmod(folder.path.c_str(), 0777);
  CHECK(says(refusal(path), "is accessible to other users (mode 0777)"));
}

TEST_CASE("a certificate without a user can own no session") {
  test::ScratchDirectory folder;
  Pair authority = makeAuthority({"alice", {"laptop"}}, 30), own = issue(authority, {"alice", {"gpu-1"}}, 30);
  X509_NAME* subject = X509_get_subject_name(own.certificate.get());
  X509_NAME_ENTRY_free(X509_NAME_delete_entry(subject, X509_NAME_get_index_by_NID(subject, NID_userId, -1)));
  REQUIRE(X509_sign(own.certificate.get(), authority.key.get(), EVP_sha256()) > 0);
  CHECK(says(refusal(written(folder.path + "/i", textOf(own, authority.certificate.get()))), "a certificate without a user"));
}

TEST_CASE("names in certificates must be names of hosts or users, or addresses") {
  for (const char* name : {"gpu-1", "a.b.example", "10.0.0.2", "::1", "alice@lab", "x"}) CHECK_NOTHROW(requireName(name));
  for (std::string name : {"", "a b", "a/b", "a,DNS:b", "a:b", "a\nb", "é", "*"}) CHECK_THROWS(requireName(name));
  CHECK_THROWS(requireName(std::string(65, 'a')));
}

}  // namespace vgpu::keys
