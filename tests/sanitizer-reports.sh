# What sanitizers reported in any process of one test, for run-flavour and tools/library.sh. Nobody looks at the exit code of
# a worker that is being killed or of a daemon's child, so their reports go to files and each of them fails the test.
# shellcheck shell=bash

# sanitizersReportTo FOLDER: the reports of all that this shell starts become FOLDER/sanitizer.PID.log. Builds without a
# sanitizer take no options and get none.
sanitizersReportTo() {
  local options
  for options in ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS; do
    [ -z "${!options:-}" ] || export "$options=${!options}:log_path=$1/sanitizer:log_suffix=.log"
  done
}

# sanitizersReported FOLDER: whether there is a report; undefined behaviour goes to the process's own log whatever its options.
sanitizersReported() { compgen -G "$1/sanitizer.*" >/dev/null || grep -qs ': runtime error: ' "$1"/*.log; }
