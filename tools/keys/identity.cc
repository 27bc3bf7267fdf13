#include "tools/keys/identity.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/io.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tools/common/config-folder.h"
#include "tools/common/printable.h"
#include "vgpu/base/fail.h"

namespace vgpu::keys {
namespace {

constexpr off_t mostBytes = 64 << 10;

struct KeyFile {
  PrivateKey key;
  std::vector<Certificate> certificates;
};

// Otherwise other users could read the key, or replace it.
void requireClosed(const struct stat& is, const std::string& path, mode_t forbidden, const char* remedy) {
  if (is.st_uid != geteuid() && is.st_uid != 0)
    fail(fmt::format("{} belongs to user {}, not to you: only your own keys are used", path, is.st_uid));
  if ((is.st_mode & forbidden) != 0)
    fail(
        fmt::format("{} is accessible to other users (mode {:04o}), so its keys may be known to them: chmod {} {}, and if anybody else "
                    "uses this machine, make new keys",
                    path, is.st_mode & 07777, remedy, path));
}

std::string readPrivateFile(const std::string& path, const std::string& ifMissing) {
  kj::AutoCloseFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0 && errno == ENOENT) fail("there is no " + path + ": " + ifMissing);
  struct stat is;
  if (file.get() < 0 || fstat(file, &is) != 0) fail(fmt::format("{} cannot be read: {}", path, strerror(errno)));
  if (!S_ISREG(is.st_mode) || is.st_size > mostBytes) fail(path + " is not a file of keys");
  requireClosed(is, path, 077, "600");
  std::string folder = path.substr(0, path.rfind('/') + 1);
  struct stat around;
  if (stat(folder.empty() ? "." : folder.c_str(), &around) == 0) requireClosed(around, folder, 022, "700");
  std::string text(static_cast<size_t>(is.st_size), '\0');
  ssize_t got = pread(file, text.data(), text.size(), 0);
  if (got != is.st_size) fail(path + " could not be read completely");
  return text;
}

// Never asks for a password, because a daemon has no terminal.
int noPassword(char*, int, int, void*) { return -1; }

KeyFile readKeyFile(const std::string& path, const std::string& ifMissing) {
  const std::string text = readPrivateFile(path, ifMissing);
  auto source = [&] { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); };
  KeyFile found;
  found.key.reset(PEM_read_bio_PrivateKey(source().get(), nullptr, noPassword, nullptr));
  if (found.key == nullptr)
    fail(fmt::format("{} has no readable private key ({}): it must have a key in PEM form without a password", path,
                     openSslReason()));
  Bio rest = source();
  while (X509* one = PEM_read_bio_X509(rest.get(), nullptr, noPassword, nullptr)) found.certificates.emplace_back(one);
  openSslReason();  // discards OpenSSL's error for the end of the file
  if (found.certificates.empty() || X509_check_private_key(found.certificates.front().get(), found.key.get()) != 1)
    fail(path + " has no certificate for its private key: it must have the key, its certificate, and then the CA's");
  return found;
}

}  // namespace

std::string keyFolder() {
  const char* named = std::getenv("VGPU_KEYS");
  return named != nullptr && *named != 0 ? named : configFolder() + "/keys";
}

std::string ownIdentityFile() { return keyFolder() + "/identity.pem"; }
std::string authorityFile() { return keyFolder() + "/ca.pem"; }

Identity readIdentity(const std::string& file) {
  KeyFile found = readKeyFile(file, fmt::format("`vgpuctl keys init` makes a CA and keys of this host; if you have a CA, `vgpuctl keys "
                                                "issue {}` on its host makes that file",
                                                ownHostName()));
  if (found.certificates.size() != 2)
    fail(fmt::format("{} has {} certificates: it must have its own, and then the CA's", file, found.certificates.size()));
  Identity identity{kj::mv(found.key), kj::mv(found.certificates[0]), kj::mv(found.certificates[1]), file};
  if (userOf(*identity.certificate).empty())
    fail(file + " has a certificate without a user (UID in its subject), and a session belongs to the user of a certificate");
  return identity;
}

Pair readAuthority() {
  KeyFile found = readKeyFile(authorityFile(),
                              "certificates are issued on the host and by the user that made the CA with `vgpuctl keys init`; VGPU_KEYS "
                              "names its folder");
  return {kj::mv(found.certificates.front()), kj::mv(found.key)};
}

std::string textOf(const Pair& pair, const X509* authority) {
  Bio text(BIO_new(BIO_s_mem()));
  bool isWritten = PEM_write_bio_PrivateKey(text.get(), pair.key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1 &&
                   PEM_write_bio_X509(text.get(), pair.certificate.get()) == 1 &&
                   (authority == nullptr || PEM_write_bio_X509(text.get(), authority) == 1);
  require(isWritten, "write keys");
  char* bytes = nullptr;
  long length = BIO_get_mem_data(text.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(length));
}

}  // namespace vgpu::keys
