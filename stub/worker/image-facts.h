// What the worker must know of a module image that the driver does not tell: whether its kernels print or use the device
// heap, and the names of its variables. `image` is PTX text, an ELF file or a fatbinary (docs/fatbinary.md); not trusted.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>

namespace vgpu::stub {

// Whether the image names `function` (a C identifier) as a symbol of its own or of others. True where it cannot tell, as
// for a member that does not decompress.
bool imageNames(std::span<const std::byte> image, std::string_view function);

// The driver empties a kernel's printf buffer when the host waits through it; a program of ours waits for the GPU without
// the driver's knowledge. So the worker waits the driver's way for programs that print, and only for those.
inline bool mayPrint(std::span<const std::byte> image) { return imageNames(image, "vprintf"); }

// The device heap is the driver's: neither its place nor its book-keeping can be saved.
inline bool usesHeap(std::span<const std::byte> image) { return imageNames(image, "malloc"); }

// Every name that may be a variable of the module: the declarations of its PTX, the data symbols of its machine code.
// Some may be no variable; the driver knows which.
std::set<std::string> possibleVariables(std::span<const std::byte> image);

}  // namespace vgpu::stub
