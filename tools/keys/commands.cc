#include "tools/keys/commands.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "tools/common/config-folder.h"
#include "tools/common/new-file.h"
#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/keys/identity.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/private-folder.h"

namespace vgpu::keys {
namespace {

constexpr unsigned authorityDays = 3650, mostDays = 36500, usualDays = 365;

struct Options {
  std::string user, file;
  std::vector<std::string> names;
  unsigned days = usualDays;
};

std::string ownUserName() {
  const passwd* user = getpwuid(geteuid());
  return user == nullptr ? std::to_string(geteuid()) : user->pw_name;
}

void write(const std::string& path, const std::string& text) {
  NewFile file(path);
  size_t put = 0;
  while (put < text.size()) {
    ssize_t wrote;
    KJ_SYSCALL(wrote = ::write(file.fd(), text.data() + put, text.size() - put), path.c_str());
    put += static_cast<size_t>(wrote);
  }
  file.publish();
}

void requireAbsent(const std::string& path) {
  if (std::filesystem::exists(std::filesystem::symlink_status(path)))
    fail(fmt::format("{} exists already and is not overwritten: move it away first, or name another file", path));
}

// Makes a CA, and keys of this host.
int init(const Options& options) {
  const std::string user = options.user.empty() ? ownUserName() : options.user;
  requireName(user);
  for (const std::string& path : {authorityFile(), ownIdentityFile()})
    if (std::filesystem::exists(std::filesystem::symlink_status(path)))
      fail(fmt::format(
          "{} exists already and is not overwritten: `vgpuctl keys show` describes it. For new keys from that CA use `vgpuctl keys issue`; "
          "for a new CA, name another folder with VGPU_KEYS",
          path));
  std::string problem;
  if (openPrivateFolder(keyFolder(), problem) == nullptr) fail("cannot make the folder for keys " + keyFolder() + ": " + problem);
  Subject subject{user, {ownHostName()}};
  requireName(subject.names.front());
  Pair authority = makeAuthority(subject, authorityDays);
  Pair own = issue(authority, subject, options.days);
  write(authorityFile(), textOf(authority, nullptr));
  write(ownIdentityFile(), textOf(own, authority.certificate.get()));
  fmt::print("{} has your CA, until {}\n{} has keys for {}, until {}\n", authorityFile(), endOf(*authority.certificate),
             ownIdentityFile(), holderOf(*own.certificate), endOf(*own.certificate));
  fmt::print("For another host: vgpuctl keys issue HOST\n");
  return 0;
}

int issueFor(const Options& options) {
  Pair authority = readAuthority();
  Subject subject{options.user.empty() ? userOf(*authority.certificate) : options.user, options.names};
  requireName(subject.user);
  for (const std::string& name : subject.names) requireName(name);
  const std::string path = options.file.empty() ? subject.names.front() + ".pem" : options.file;
  requireAbsent(path);
  Pair made = issue(authority, subject, options.days);
  if (ASN1_TIME_compare(X509_get0_notAfter(made.certificate.get()), X509_get0_notAfter(authority.certificate.get())) > 0)
    fail(fmt::format("a certificate for {} days would outlive its CA, which ends on {}: give fewer --days, or make a new CA",
                     options.days, endOf(*authority.certificate)));
  write(path, textOf(made, authority.certificate.get()));
  fmt::print(
      "{} has keys for {}, until {}. Copy it to that host, as ~/.config/vgpu/keys/identity.pem (folder 0700, file 0600):\n", path,
      holderOf(*made.certificate), endOf(*made.certificate));
  fmt::print("  ssh {0} 'umask 077; mkdir -p ~/.config/vgpu/keys; cat > ~/.config/vgpu/keys/identity.pem' < {1}\n",
             subject.names.front(), path);
  return 0;
}

int show(const Options& options) {
  const std::string file = options.file.empty() ? ownIdentityFile() : options.file;
  Identity identity = readIdentity(file);
  const X509& own = *identity.certificate;
  fmt::print("{}\n", file);
  fmt::print("  user   {}\n", printable(userOf(own)));
  fmt::print("  hosts  {}\n", printable(fmt::format("{}", fmt::join(namesOf(own), ", "))));
  fmt::print("  valid  {} to {}{}\n", beginOf(own), endOf(own),
             X509_cmp_current_time(X509_get0_notAfter(&own)) < 0 ? ": EXPIRED" : "");
  fmt::print("  by     {}, until {}\n", printable(issuerOf(own)), endOf(*identity.authority));
  return 0;
}

// Run by vgpud before it listens.
int check(const Options&) {
  Identity identity = readIdentity(ownIdentityFile());
  if (X509_cmp_current_time(X509_get0_notAfter(identity.certificate.get())) < 0)
    fail(fmt::format("the certificate in {}, {}, expired on {}: other hosts would not accept it. `vgpuctl keys issue` makes a new one",
                     identity.file, printable(holderOf(*identity.certificate)), endOf(*identity.certificate)));
  return 0;
}

}  // namespace

void addCommands(CLI::App& app, std::function<int()>& chosen) {
  auto options = std::make_shared<Options>();
  auto* keys = app.add_subcommand("keys", "Keys and certificates for tls: connections (VGPU_KEYS names their folder)");
  keys->require_subcommand(1);
  auto on = [&](const char* name, const char* what, int (*action)(const Options&)) {
    auto* command = keys->add_subcommand(name, what);
    command->callback([&chosen, options, action] {
      chosen = [options, action] { return exitCodeOf("vgpuctl", [&] { return action(*options); }); };
    });
    return command;
  };
  auto addDays = [&](CLI::App* command) {
    command->add_option("--days", options->days, "how many days the certificate is valid")
        ->capture_default_str()
        ->check(CLI::Range(1u, mostDays));
  };
  auto* made = on("init", "Make a CA, and keys for yourself on this host", init);
  made->add_option("--user", options->user, "the user whose sessions they are for (default: your user name)");
  addDays(made);
  auto* issued = on("issue", "Make keys for another host, or another user, as one file", issueFor);
  issued->add_option("names", options->names, "the host's name, and further names and IP addresses by which it is reached")->required();
  issued->add_option("--user", options->user, "the user whose sessions they are for (default: the CA's user)");
  issued->add_option("--to", options->file, "the file to write, which must not exist (default: NAME.pem)");
  addDays(issued);
  auto* shown = on("show", "Show whose keys a file has, and until when they are valid", show);
  shown->add_option("file", options->file, "a file of keys (default: your own)");
  on("check", "Return 1 if your own keys cannot be used", check)->group("");
}

}  // namespace vgpu::keys
