# Nodes with keys: a client with a certificate of the same CA and user is served as on this host; all others, and the node, get the reason,
# and nothing beyond the handshake is sent.
keys() { "$tree/bin/vgpuctl" keys "$@"; }
# with FOLDER COMMAND...: runs it with the keys of $dir/FOLDER.
with() {
  local folder=$1
  shift
  VGPU_KEYS=$dir/$folder "$@"
}
# turnedAway FOLDER PATTERN PATTERN [ADDRESS]: `ps` with those keys must be refused; it reports the first pattern, the node the second.
turnedAway() {
  local before
  before=$(grep -c "is not served: .*$3" "$dir/a.log")
  refused "$2" with "$1" at "${4:-$address}" ps
  waitUntil turnedAwayMore "$3" "$before"
}
turnedAwayMore() { [ "$(grep -c "is not served: .*$1" "$dir/a.log")" -gt "$2" ]; }

# Without keys a node cannot listen, and no node can be reached.
refused "there is no $dir/config/vgpu/keys/identity.pem: .vgpuctl keys init. makes a CA" \
  "$tree/bin/vgpud" --run-dir "$dir/c" --device emulated --listen tls:127.0.0.1:0
refused "there is no $dir/none/identity.pem" with none at tls:127.0.0.1:1 ps
refused "certificates are issued on the host and by the user that made the CA" with none keys issue gpu-1

# Makes a CA and keys, which are private and never overwritten.
succeeds keys init
folder=$dir/config/vgpu/keys
[ "$(stat -c %a "$folder" "$folder/ca.pem" "$folder/identity.pem" | tr '\n' ' ')" = "700 600 600 " ] || fail "keys are open to others"
before=$(cat "$folder"/*.pem)
refused "ca.pem exists already and is not overwritten" keys init
succeeds keys issue gpu-1 127.0.0.2 --days 7 --to "$dir/gpu-1.pem"
refused "gpu-1.pem exists already and is not overwritten" keys issue gpu-1 --to "$dir/gpu-1.pem"
refused "would outlive its CA" keys issue gpu-1 --days 4000 --to "$dir/long.pem"
refused "cannot be in a certificate" keys issue "gpu 1" --to "$dir/x.pem"
[ ! -e "$dir/long.pem" ] && [ ! -e "$dir/x.pem" ] || fail "a refused file was made"
[ "$before" = "$(cat "$folder"/*.pem)" ] || fail "the keys have changed"
keys show "$dir/gpu-1.pem" >"$dir/show.log" || fail "it cannot be shown"
says show "hosts  gpu-1, 127.0.0.2, localhost" || fail "it does not say which hosts"

# Keys that others can read, and missing keys.
install -d -m 700 "$dir/open" "$dir/empty"
install -m 644 "$dir/gpu-1.pem" "$dir/open/identity.pem"
: >"$dir/empty/identity.pem"
chmod 600 "$dir/empty/identity.pem"
refused "is accessible to other users (mode 0644).*chmod 600" with open at tls:127.0.0.1:1 ps
refused "is accessible to other users" with open "$tree/bin/vgpud" --run-dir "$dir/c" --device emulated --listen tls:127.0.0.1:0
refused "has no readable private key" with empty at tls:127.0.0.1:1 ps

startNode a --listen tls:127.0.0.1:0 --listen tls:127.0.0.2:0 --listen tcp:127.0.0.1:0
startNode b
mapfile -t addresses < <(addressOf a)
address=${addresses[0]} plain=${addresses[2]}
succeeds at "$address" ps
succeeds at "tls://${address#tls:}" ps

# expire KEYS FOLDER: the same keys with a certificate of the test's CA that was valid for one day of 2020, as $dir/FOLDER/identity.pem.
expire() {
  install -d -m 700 "$dir/$2"
  (
    cd "$dir/$2" && umask 077 && : >index.txt
    printf '%s\n' '[ca]' 'default_ca = one' '[one]' 'database = index.txt' 'new_certs_dir = .' 'rand_serial = yes' \
      'default_md = sha256' 'policy = any' 'copy_extensions = copyall' '[any]' 'UID = supplied' 'CN = supplied' >ca.conf
    openssl x509 -x509toreq -copy_extensions copyall -in "$1" -signkey "$1" -out csr.pem &&
      openssl ca -batch -notext -preserveDN -config ca.conf -cert "$folder/ca.pem" -keyfile "$folder/ca.pem" -in csr.pem \
        -startdate 200101000000Z -enddate 200102000000Z -out certificate.pem &&
      { openssl pkey -in "$1" && cat certificate.pem && openssl x509 -in "$folder/ca.pem"; } >identity.pem
  ) >"$dir/expire.log" 2>&1
}

# Strangers, by the certificate that they present.
install -d -m 700 "$dir/bob" "$dir/gpu-1"
succeeds keys issue laptop --user bob --to "$dir/bob/identity.pem"
install -m 600 "$dir/gpu-1.pem" "$dir/gpu-1/identity.pem"
succeeds with other keys init
turnedAway bob "is for another user than ours (laptop of bob)" "its certificate is for another user than ours"
turnedAway other "is not from our CA" "does not know the CA of our certificate"
if command -v openssl >"$dir/openssl.log"; then
  expire "$dir/gpu-1.pem" expired || fail "no expired certificate was made"
  turnedAway expired "it says that our certificate (gpu-1 of .*) has expired: .vgpuctl keys issue. makes a new one" \
    "its certificate (gpu-1 of .*) has expired on 2020-01-02"
fi
refused "is for .*, not for 127.0.0.2: address the node by one of these names" at "${addresses[1]}" ps
turnedAway bob "may take tls: only" "does not speak TLS" "tcp:${address#tls:}"
refused "may not speak TLS (tcp:)" at "tls:${plain#tcp:}" ps
waitUntil says a "is not served: it speaks TLS, but this port takes plain TCP"
succeeds with gpu-1 at "$address" ps
python3 - "${address##*:}" "$dir/bob/identity.pem" "$dir/other/identity.pem" "$(greetingVersion)" <<'PY' || fail "a stranger was not told by an alert alone"
import socket, ssl, struct, sys
port, bob, other, version = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
# A client that accepts every node's certificate, and sends its greeting at once.
def heard(keys=None, version=ssl.TLSVersion.TLSv1_3):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    if keys: context.load_cert_chain(keys)
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.settimeout(20)
        try:
            with context.wrap_socket(plain) as secret:
                secret.sendall(b"VGPULINK" + struct.pack("<II", version, 1) + b"\0" * 48)
                return str(secret.recv(4096))
        except (ssl.SSLError, ConnectionError) as error:
            return str(error).lower().replace("_", " ")
for alert, answer in (("certificate required", heard()), ("handshake failure", heard(bob)), ("unknown ca", heard(other)),
                      ("protocol version", heard(bob, ssl.TLSVersion.TLSv1_2))):
    assert alert in answer, (alert, answer)
PY
waitUntil says a "its certificate (laptop of bob, .*is for another user than ours"
waitUntil says a "is not from our CA"
waitUntil says a "shows no certificate"
waitUntil noRelays

# A program and its session, which another user of the CA can neither see nor take.
startFar "$address" far 24
token=$(ls "$dir/a/relays")
turnedAway bob "is for another user" "is for another user"
[ "$(ls "$dir/a/relays")" = "$token" ] || fail "the session has another connection"
farMoves "$address" far
endContents far
waitUntil noRelays
waitUntil listsNot a far
stopNode a
stopNode b
