# Collects sanitizer reports of all processes of one test, for run-flavour and tools/library.sh. The exit code of a killed worker or of a
# daemon's child is not checked, so reports go to files, and each of them fails the test.
# shellcheck shell=bash

# sanitizersReportTo FOLDER: sends the reports of all processes that this shell starts to FOLDER/sanitizer.PID.log. In builds without a
# sanitizer it sets no options.
sanitizersReportTo() {
  local options
  for options in ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS; do
    [ -z "${!options:-}" ] || export "$options=${!options}:log_path=$1/sanitizer:log_suffix=.log"
  done
}

# sanitizersReported FOLDER: whether there is a report; undefined behaviour is always reported to the process's own log.
sanitizersReported() { compgen -G "$1/sanitizer.*" >/dev/null || grep -qs ': runtime error: ' "$1"/*.log; }
