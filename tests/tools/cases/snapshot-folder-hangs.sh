# A folder that hangs, as on a network mount whose server is gone, blocks the suspend or resume that names it, but neither the daemon nor
# other sessions.
[ -z "${VGPU_PROGRAM_PRELOAD:-}" ] || skip "a sanitizer's runtime must come first"
cat >"$dir/hang.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void hang(const char* path) {
  while (strstr(path, "/hung/") != 0 && access(HUNG, F_OK) == 0) usleep(20000);
}
int mkdir(const char* path, mode_t mode) {
  hang(path);
  return ((int (*)(const char*, mode_t))dlsym(RTLD_NEXT, "mkdir"))(path, mode);
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  hang(path);
  return ((int (*)(const char*, int, mode_t))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}
C
mkdir "$dir/hung"
cc -shared -fPIC -DHUNG="\"$dir/hung/server-is-gone\"" -o "$dir/hang.so" "$dir/hang.c" -ldl 2>"$dir/cc.log" ||
  skip "no C compiler"
LD_PRELOAD=$dir/hang.so startNode a
startDouble a one
startDouble a two
startDouble a three
succeeds ctl a suspend three --to "$dir/hung/3"

touch "$dir/hung/server-is-gone"
ctl a suspend one --to "$dir/hung/1" >"$dir/suspend.log" 2>&1 &
suspend=$!
ctl a resume "$dir/hung/3" >"$dir/resume.log" 2>&1 &
resume=$!
waitUntil hasState a one suspending
says one 'gate closed' && fail "a program was stopped for a folder that hangs"
stillWorks a two

# Whoever gives up frees the session at once.
kill -INT "$(commandsOf suspend)"
waitUntil hasState a one running

rm "$dir/hung/server-is-gone"
wait "$suspend" "$resume"
hasState a three running || succeeds ctl a resume "$dir/hung/3"
waitUntil isGone "$dir/hung/1"
stillWorks a one
