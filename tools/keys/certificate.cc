#include "tools/keys/certificate.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include <algorithm>
#include <ctime>
#include <string_view>

#include "vgpu/base/fail.h"

namespace vgpu::keys {
namespace {

constexpr size_t mostNameBytes = 64;  // limit of a common name: RFC 5280, ub-common-name
constexpr int serialBytes = 16;
constexpr long version3 = 2;
// Clocks of two hosts differ, so a certificate is valid from some time before it was made.
constexpr long earlierSeconds = 300;
constexpr std::string_view loopback[] = {"localhost", "127.0.0.1", "::1"};

bool isAddress(const std::string& name) {
  in6_addr bytes;
  return inet_pton(AF_INET, name.c_str(), &bytes) == 1 || inet_pton(AF_INET6, name.c_str(), &bytes) == 1;
}

PrivateKey newKey() {
  PrivateKey key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  require(key != nullptr, "make a key");
  return key;
}

void setEntry(X509_NAME* name, int field, const std::string& text) {
  auto* bytes = static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
  require(X509_NAME_add_entry_by_NID(name, field, MBSTRING_UTF8, bytes, static_cast<int>(text.size()), -1, 0) == 1,
          "set a certificate's subject");
}

std::string entryOf(const X509_NAME* name, int field) {
  int index = X509_NAME_get_index_by_NID(name, field, -1);
  if (index < 0) return "";
  unsigned char* bytes = nullptr;
  int length = ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)));
  if (length < 0) return "";
  std::string text(static_cast<const char*>(static_cast<const void*>(bytes)), static_cast<size_t>(length));
  OPENSSL_free(bytes);
  return text;
}

void extend(X509* certificate, X509* issuer, int extension, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  Owned<X509_EXTENSION, X509_EXTENSION_free> made(X509V3_EXT_conf_nid(nullptr, &context, extension, value.c_str()));
  require(made != nullptr && X509_add_ext(certificate, made.get(), -1) == 1, "set a certificate's key usage");
}

Certificate begin(EVP_PKEY* key, const Subject& subject, unsigned days) {
  Certificate made(X509_new());
  unsigned char serial[serialBytes];
  require(made != nullptr && RAND_bytes(serial, sizeof serial) == 1, "make a certificate");
  serial[0] = (serial[0] & 0x7f) | 0x40;  // positive, and with exactly that many bytes
  Owned<BIGNUM, BN_free> number(BN_bin2bn(serial, sizeof serial, nullptr));
  X509_set_version(made.get(), version3);
  require(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(made.get())) != nullptr, "set a certificate's serial number");
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -earlierSeconds);
  X509_time_adj_ex(X509_getm_notAfter(made.get()), static_cast<int>(days), 0, nullptr);
  X509_set_pubkey(made.get(), key);
  setEntry(X509_get_subject_name(made.get()), NID_userId, subject.user);
  return made;
}

std::string textOf(const ASN1_TIME* time) {
  tm parts{};
  char text[64];
  if (ASN1_TIME_to_tm(time, &parts) != 1 || strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts) == 0)
    return "an unknown time";
  return text;
}

}  // namespace

void requireName(const std::string& text) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:@";
  if (text.empty() || text.size() > mostNameBytes || text.find_first_not_of(allowed) != text.npos ||
      (text.find(':') != text.npos && !isAddress(text)))
    fail("\"" + text +
         "\" cannot be in a certificate: a name has 1 to 64 letters, digits and characters of .-_@, or is an IP address");
}

Pair makeAuthority(const Subject& subject, unsigned days) {
  PrivateKey key = newKey();
  Certificate made = begin(key.get(), subject, days);
  std::string name = "the CA of " + subject.user + " on " + subject.names.front();
  setEntry(X509_get_subject_name(made.get()), NID_commonName, name.substr(0, mostNameBytes));
  X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
  extend(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(made.get(), made.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(made.get(), made.get(), NID_subject_key_identifier, "hash");
  require(X509_sign(made.get(), key.get(), EVP_sha256()) > 0, "sign a certificate");
  return {std::move(made), std::move(key)};
}

Pair issue(const Pair& authority, const Subject& subject, unsigned days) {
  PrivateKey key = newKey();
  Certificate made = begin(key.get(), subject, days);
  X509* issuer = authority.certificate.get();
  setEntry(X509_get_subject_name(made.get()), NID_commonName, subject.names.front());
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
  std::string names;
  auto add = [&](const std::string& name) {
    names += (names.empty() ? "" : ",") + std::string(isAddress(name) ? "IP:" : "DNS:") + name;
  };
  for (const std::string& name : subject.names) add(name);
  for (std::string_view name : loopback)
    if (std::ranges::find(subject.names, name) == subject.names.end()) add(std::string(name));
  extend(made.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  extend(made.get(), issuer, NID_key_usage, "critical,digitalSignature");
  extend(made.get(), issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  extend(made.get(), issuer, NID_subject_key_identifier, "hash");
  extend(made.get(), issuer, NID_authority_key_identifier, "keyid:always");
  extend(made.get(), issuer, NID_subject_alt_name, names);
  require(X509_sign(made.get(), authority.key.get(), EVP_sha256()) > 0, "sign a certificate");
  return {std::move(made), std::move(key)};
}

std::string userOf(const X509& certificate) { return entryOf(X509_get_subject_name(&certificate), NID_userId); }

std::vector<std::string> namesOf(const X509& certificate) {
  std::vector<std::string> names;
  void* found = X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr);
  Owned<GENERAL_NAMES, GENERAL_NAMES_free> all(static_cast<GENERAL_NAMES*>(found));
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    int type;
    auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all.get(), i), &type));
    if (type != GEN_DNS && type != GEN_IPADD) continue;
    const unsigned char* bytes = ASN1_STRING_get0_data(value);
    const int length = ASN1_STRING_length(value);
    if (type == GEN_DNS) {
      names.emplace_back(bytes, bytes + length);
    } else {
      char text[INET6_ADDRSTRLEN];
      if (inet_ntop(length == sizeof(in_addr) ? AF_INET : AF_INET6, bytes, text, sizeof text) != nullptr)
        names.emplace_back(text);
    }
  }
  return names;
}

bool isFor(const X509& certificate, const std::string& host) {
  X509* one = const_cast<X509*>(&certificate);  // OpenSSL's function does not change it
  if (isAddress(host)) return X509_check_ip_asc(one, host.c_str(), 0) == 1;
  return X509_check_host(one, host.data(), host.size(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, nullptr) == 1;
}

std::string beginOf(const X509& certificate) { return textOf(X509_get0_notBefore(&certificate)); }
std::string endOf(const X509& certificate) { return textOf(X509_get0_notAfter(&certificate)); }

std::string holderOf(const X509& certificate) {
  std::string name = entryOf(X509_get_subject_name(&certificate), NID_commonName), user = userOf(certificate);
  return (name.empty() ? "one without a name" : name) + " of " + (user.empty() ? "no user" : user);
}

std::string issuerOf(const X509& certificate) {
  std::string name = entryOf(X509_get_issuer_name(&certificate), NID_commonName);
  return name.empty() ? "a CA without a name" : name;
}

}  // namespace vgpu::keys
