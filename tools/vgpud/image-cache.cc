#include "tools/vgpud/image-cache.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "vgpu/base/fail.h"
#include "vgpu/base/private-folder.h"

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;
// The driver's own limit: CUDA C++ Programming Guide, CUDA_CACHE_MAXSIZE.
constexpr uint64_t mostCompiledBytes = 4ull << 30;

// The driver keeps compiled code below HOME, or nowhere if a daemon has no HOME. A folder set in the environment is respected.
void nameCompiled(WorkerKind& kind, const std::string& folder, uint64_t bytes) {
  if (std::getenv("CUDA_CACHE_PATH") != nullptr) return;
  kind.environment.push_back("CUDA_CACHE_PATH=" + folder);
  if (std::getenv("CUDA_CACHE_MAXSIZE") != nullptr) return;
  kind.environment.push_back("CUDA_CACHE_MAXSIZE=" + std::to_string(std::min(bytes, mostCompiledBytes)));
}

}  // namespace

std::string defaultImageCache() {
  auto absolute = [](const char* path) { return path != nullptr && *path == '/'; };
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (absolute(cache)) return std::string(cache) + "/vgpu";  // a relative path is to be ignored: XDG Base Directory 0.8
  if (geteuid() == 0) return "/var/cache/vgpu";
  return absolute(home) ? std::string(home) + "/.cache/vgpu" : "";
}

void useImageCache(std::vector<WorkerKind>& kinds, const DaemonOptions& options) {
  if (options.imageCache == "none") return;
  bool named = !options.imageCache.empty();
  std::string folder = named ? fs::absolute(options.imageCache).lexically_normal().string() : defaultImageCache(),
              problem;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  std::string images = folder + "/images", compiled = folder + "/compiled";
  if (folder.empty()) problem = "neither HOME nor XDG_CACHE_HOME is set";
  for (auto& path : {folder, images, compiled})
    if (problem.empty()) openPrivateFolder(path, problem);
  if (!problem.empty()) {
    if (named) fail("the image cache cannot be used: " + problem + ". To run without one, give --image-cache none");
    spdlog::warn("there is no image cache: {}. Name a folder with --image-cache, or none", problem);
    return;
  }
  for (auto& kind : kinds) {
    for (const std::string& argument : {std::string("--image-store"), images, std::string("--image-store-bytes"),
                                        std::to_string(options.imageCacheBytes)})
      kind.arguments.push_back(argument);
    nameCompiled(kind, compiled, options.imageCacheBytes);
  }
}

}  // namespace vgpu::daemon
