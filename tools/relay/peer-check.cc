#include "tools/relay/peer-check.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <cerrno>
#include <cstring>

#include "tools/common/printable.h"

namespace vgpu::relay {
namespace {

// Alerts by which the other side rejects our certificate (RFC 8446, 6.2). {0}: the certificate's holder, {1}: its CA.
struct Alert {
  int reason;
  const char* text;
};
constexpr Alert alerts[] = {
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
     "it says that our certificate ({0}) has expired: `vgpuctl keys issue` makes a new one; if it has not expired, compare the clocks of "
     "both hosts"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA,
     "it does not know the CA of our certificate ({0}, by {1}): both sides need keys from the same CA (`vgpuctl keys issue`)"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
     "its certificate is for another user than ours ({0}): sessions belong to the user of a certificate, and a node serves one user"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "it does not accept our certificate ({0}, by {1}): it may have asked for another name"},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, "it says that our certificate ({0}, by {1}) is not for this use"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "it requires a certificate"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "it does not speak TLS 1.3"},
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "it shows no certificate: this node serves only clients with a certificate of its CA"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "it does not speak TLS 1.3"},
    {SSL_R_WRONG_VERSION_NUMBER, "it does not speak TLS: one side uses tls:, the other does not"},
    {SSL_R_HTTP_REQUEST, "it does not speak TLS: one side uses tls:, the other does not"},
};

bool isOfOtherAuthority(int error) {
  switch (error) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return true;
    default:
      return false;
  }
}

}  // namespace

void PeerCheck::watch(SSL* connection) {
  SSL_set_app_data(connection, this);
  SSL_set_verify(connection, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify);
}

int PeerCheck::verify(int accepted, X509_STORE_CTX* context) {
  auto* connection = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& check = *static_cast<PeerCheck*>(SSL_get_app_data(connection));
  if (accepted == 1 && X509_STORE_CTX_get_error_depth(context) > 0) return 1;
  int error = accepted == 1 ? X509_V_OK : X509_STORE_CTX_get_error(context);
  X509* concerned = isOfOtherAuthority(error) ? nullptr : X509_STORE_CTX_get_current_cert(context);
  if (concerned == nullptr) concerned = X509_STORE_CTX_get0_cert(context);
  check.problem = check.judge(error, *concerned);
  X509_STORE_CTX_set_error(context, error);
  return check.problem.empty() ? 1 : 0;
}

std::string PeerCheck::judge(int& error, const X509& certificate) const {
  const std::string holder = printable(keys::holderOf(certificate)), issuer = printable(keys::issuerOf(certificate));
  const std::string its = fmt::format("its certificate ({}, by {}) ", holder, issuer);
  if (isOfOtherAuthority(error))
    return its + fmt::format("is not from our CA ({}): both sides need keys from the same CA (`vgpuctl keys issue`)",
                             printable(keys::issuerOf(*own.certificate)));
  if (error == X509_V_ERR_CERT_HAS_EXPIRED)
    return its + "has expired on " + keys::endOf(certificate) +
           ": `vgpuctl keys issue` makes a new one; if it has not expired, compare the clocks of both hosts";
  if (error == X509_V_ERR_CERT_NOT_YET_VALID)
    return its + "is valid only from " + keys::beginOf(certificate) + ": compare the clocks of both hosts";
  if (error != X509_V_OK) return its + "cannot be used: " + X509_verify_cert_error_string(error);
  if (keys::userOf(certificate) != keys::userOf(*own.certificate)) {
    error = X509_V_ERR_APPLICATION_VERIFICATION;  // sent as alert handshake_failure
    return its + fmt::format("is for another user than ours ({}): sessions belong to the user of a certificate",
                             printable(keys::holderOf(*own.certificate)));
  }
  if (!host.empty() && !keys::isFor(certificate, host)) {
    error = X509_V_ERR_HOSTNAME_MISMATCH;  // sent as alert bad_certificate
    return its + fmt::format(
                     "is for {0}, not for {1}: address the node by one of these names, or issue a certificate for this name as well: "
                     "`vgpuctl keys issue NAME {1}`",
                     printable(fmt::format("{}", fmt::join(keys::namesOf(certificate), ", "))), host);
  }
  return "";
}

std::string PeerCheck::problemOf(SSL* connection, int result) const {
  const int systemError = errno;
  const int kind = SSL_get_error(connection, result);
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  const bool isEof = kind == SSL_ERROR_ZERO_RETURN || (kind == SSL_ERROR_SSL && reason == SSL_R_UNEXPECTED_EOF_WHILE_READING);
  if (isEof || kind == SSL_ERROR_SYSCALL) {
    ERR_clear_error();
    if (SSL_is_init_finished(connection) == 0)
      return "it closed the connection before it showed a certificate: it may not speak TLS (tcp:), or may not be vgpu";
    return isEof || systemError == 0 ? "the other side has closed the connection" : std::strerror(systemError);
  }
  if (!problem.empty()) {
    ERR_clear_error();
    return problem;
  }
  for (const Alert& alert : alerts) {
    if (alert.reason != reason) continue;
    ERR_clear_error();
    return fmt::format(fmt::runtime(alert.text), printable(keys::holderOf(*own.certificate)),
                       printable(keys::issuerOf(*own.certificate)));
  }
  return "TLS: " + keys::openSslReason();
}

}  // namespace vgpu::relay
