// A driver with only NVIDIA's checkpoint calls: the state of each process is in a file named by its id in the folder
// VGPU_CHECKPOINT_DOUBLE. A call fails if the process's state does not allow it, or if a file `fail-NAME` with its name exists. Successful
// calls are appended to the file `log`.
#include <cuda.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE* openIn(const char* name, const char* mode) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", getenv("VGPU_CHECKPOINT_DOUBLE"), name);
  return fopen(path, mode);
}

static int readState(int pid) {
  char name[32];
  int state = -1;
  snprintf(name, sizeof name, "%d", pid);
  FILE* file = openIn(name, "r");
  if (file == NULL) return -1;
  if (fscanf(file, "%d", &state) != 1) state = -1;
  fclose(file);
  return state;
}

static CUresult change(const char* call, int pid, CUprocessState from, CUprocessState to) {
  char name[32], failing[64];
  snprintf(failing, sizeof failing, "fail-%s", call);
  FILE* fails = openIn(failing, "r");
  if (fails != NULL) fclose(fails);
  if (readState(pid) != (int)from || kill(pid, 0) != 0) return CUDA_ERROR_ILLEGAL_STATE;
  if (fails != NULL) return CUDA_ERROR_NOT_READY;
  snprintf(name, sizeof name, "%d", pid);
  FILE *file = openIn(name, "w"), *log = openIn("log", "a");
  fprintf(file, "%d\n", (int)to);
  fprintf(log, "%s %d\n", call, pid);
  return fclose(file) == 0 && fclose(log) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuInit(unsigned flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_NOT_READY ? "CUDA_ERROR_NOT_READY" : "CUDA_ERROR_ILLEGAL_STATE";
  return CUDA_SUCCESS;
}
CUresult cuCheckpointProcessGetState(int pid, CUprocessState* state) {
  int found = readState(pid);
  if (found < 0) return CUDA_ERROR_INVALID_VALUE;
  *state = (CUprocessState)found;
  return CUDA_SUCCESS;
}
CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* arguments) {
  return arguments->timeoutMs == 0 ? CUDA_ERROR_INVALID_VALUE : change("lock", pid, CU_PROCESS_STATE_RUNNING, CU_PROCESS_STATE_LOCKED);
}
CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* arguments) {
  (void)arguments;
  return change("checkpoint", pid, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED);
}
CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* arguments) {
  (void)arguments;
  return change("restore", pid, CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED);
}
CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* arguments) {
  (void)arguments;
  return change("unlock", pid, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING);
}
