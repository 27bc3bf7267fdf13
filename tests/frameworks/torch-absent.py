"""PyTorch: cuFFT, which asks for the driver's private tables. Natively it works; in a session the call fails, stderr names the library, and
the program goes on."""
import os
import sys
import tempfile

import torch

from program import pause_point, show

IN_SESSION = "VGPU_NODE" in os.environ


def with_messages(call):
    """Whether `call` returns instead of raising, and its output to stderr, which is passed on."""
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            call()
            torch.cuda.synchronize()
            works = True
        except RuntimeError as error:
            print(error, file=sys.stderr, flush=True)
            works = False
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        file.seek(0)
        written = file.read().decode()
    sys.stderr.write(written)
    return works, written


def expect(name, library, call):
    works, written = with_messages(call)
    is_named = any(line.startswith("vgpu: ") and library in line for line in written.splitlines())
    if works == IN_SESSION or is_named != IN_SESSION:
        sys.exit(f"{name}: {'works' if works else 'fails'}, and stderr {'names' if is_named else 'does not name'} {library}")
    print(f"{name}: as expected", flush=True)


torch.manual_seed(1)
on_gpu = torch.randn(64, 64).cuda()
expect("fft", "libcufft.so", lambda: torch.fft.fft(on_gpu))
pause_point()
show("afterwards", (on_gpu * 2).cpu().numpy())
show("product", (on_gpu @ on_gpu).cpu().numpy())
