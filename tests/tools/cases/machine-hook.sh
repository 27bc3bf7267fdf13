# libvirt's hook never stops a machine that vgpu does not manage, whatever the user's environment or the errors in the list.
hook() { echo '<domain/>' | "$tree/lib/vgpu/libvirt-hook" "$@" 2>"$dir/hook.log"; }
bareHook() { echo '<domain/>' | env -i "PATH=$PATH" ${settings[@]+"${settings[@]}"} "$tree/lib/vgpu/libvirt-hook" "$@" 2>"$dir/hook.log"; }
settings=()
bareHook other prepare begin - || fail "the hook refuses a machine when nothing says where its user's settings are"
settings=("XDG_CONFIG_HOME=$dir/nowhere")
bareHook other started begin - || fail "the hook refuses a machine when there is no list"
: >"$dir/file"
settings=("XDG_CONFIG_HOME=$dir/file")
bareHook other started begin - || fail "the hook refuses a machine when there can be no list"

export VGPU_MACHINES=$dir/machines
printf 'unfinished unix:/nowhere\nours unix:%s/none.sock tls:there:7000 %s/none.qmp # of ours\n' "$dir" "$dir" >"$VGPU_MACHINES"
hook other migrate begin - || fail "the hook refuses a machine that is not listed"
hook other started begin - || fail "the hook refuses a machine that is not listed"
hook unfinished started begin - && fail "the hook takes a line that is none"
grep -q "line 1: expected NAME NODE TARGET QMP" "$dir/hook.log" || fail "the hook does not say which line is wrong"
hook ours migrate begin - && fail "the hook lets a machine come to a host without a vgpud"
grep -q "no vgpud answers" "$dir/hook.log" || fail "the hook does not say why"
