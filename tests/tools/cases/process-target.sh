# A saved process is restored only from unchanged files, on a machine that has the same mapped files and its process ids free: everything
# else is named, and leaves the snapshot intact.
startNode a
startNode b
needCriu a
mkdir "$dir/bin"
cp "$tree/tests/programs/contents" "$dir/bin/contents"
startContents a held 4 "$dir/bin/contents"
pid=$(field a held pid)
succeeds ctl a suspend held --process --to "$dir/good"
resumes() { ctl b resume "$dir/$1"; }
damaged() { rm -rf "$dir/bad"; cp -r "$dir/good" "$dir/bad"; }

# Files that the process has mapped.
mv "$dir/bin/contents" "$dir/bin/away"
refused "has mapped $dir/bin/contents, which is not on this machine" resumes good
sed 's/verify/verifx/' "$dir/bin/away" >"$dir/bin/contents"
printf 'x' >>"$dir/bin/contents"
refused "has mapped $dir/bin/contents, and the file here is a different one: .* here, .* when it was saved" resumes good
mv "$dir/bin/away" "$dir/bin/contents"

# The snapshot's files of the process.
pages=$(cd "$dir/good/process" && ls -S pages-*.img | head -n 1)
damaged
printf 'x' | dd of="$dir/bad/process/$pages" bs=1 seek=5000 conv=notrunc 2>"$dir/dd.log"
refused "file $pages: checksum" resumes bad
damaged
truncate -s -1 "$dir/bad/process/$pages"
refused "file $pages: length" resumes bad
damaged
rm "$dir/bad/process/pstree.img"
refused "file pstree.img: cannot be opened" resumes bad
damaged
printf ' ' >>"$dir/bad/process/process.json"
refused "file process.json: length" resumes bad
damaged
sed -i 's/"mapped"/"mopped"/' "$dir/bad/process/process.json"
refused "file process.json: checksum" resumes bad
damaged
"$tree/tests/tools/reseal" "$dir/bad/manifest.json" /process/bytes '"many"' || fail "cannot forge a manifest"
refused "manifest.json: field bytes" resumes bad

# Its process id. While it is taken, other processes must not take the ids of its threads.
takePid() { python3 - "$1" <<'P'
import os, sys, time
wanted = int(sys.argv[1])
last = "/proc/sys/kernel/ns_last_pid"
before = open(last).read()
open(last, "w").write(str(wanted - 1))
child = os.fork()
if child == 0:
    os.closerange(0, 3)  # the caller reads standard output until its end
    time.sleep(1000)
    os._exit(0)
open(last, "w").write(before)
print(child, flush=True)
P
}
taken=$(takePid "$pid" 2>"$dir/take.log")
if [ "$taken" = "$pid" ]; then
  refused "process id $pid of the saved process is in use: process $pid (python3) has it" resumes good
  kill -KILL "$taken"
  waitUntil ended "$taken"
fi

VGPU_CRIU=$dir/none refused "VGPU_CRIU names" resumes good
refused "\-\-wait is for a snapshot with the program's process" ctl b resume --wait "$dir/nothing/there"
waitUntil isEmpty "$dir/b/sessions"
succeeds resumes good
memoryIsRight held
endProgram held
stopNode a
stopNode b
