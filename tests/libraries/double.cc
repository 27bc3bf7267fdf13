// A library that stands in for NVIDIA's, with the exports of the libraries' table. It computes nothing: it appends each call to the file
// that VGPU_RECORD names, one line per call with the arguments and the bytes that they point to, and fills outputs in host memory with
// bytes that depend on the call. So a program's results and the record are the same whether it calls the library directly or through a
// session; a difference is an error of the marshalling.
//
// A call with the number -77 is invalid; a call with an object that has ended or is of another kind ends the process, as NVIDIA's
// may. With VGPU_RECORD_HOLD in its environment the first handle is made late, as by a library that loads slowly: it creates the file
// library-called in the test's folder and waits for library-go, or fails after a minute. With VGPU_RECORD_GPU it uses the GPU as
// NVIDIA's does: a handle has 32 MiB of memory, and a call that writes to host memory waits for its handle's stream.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "vgpu/api/library.h"

namespace {

using namespace vgpu::api;

// What a handle points to, or the contents of an object that lies in the program's memory.
struct Object {
  uint64_t type = 0;
  std::array<uint64_t, memberCount> members{};
  struct Settings* settings = nullptr;
  uint64_t memory = 0;
};
struct Settings {
  std::string made;
  std::vector<std::pair<std::string, std::string>> all;  // key and call
};

template <typename Pointer>
Pointer at(uint64_t word) {
  return std::bit_cast<Pointer>(word);
}

uint64_t digestOf(const std::string& text) {
  uint64_t digest = 0xcbf29ce484222325;
  for (unsigned char c : text) digest = (digest ^ c) * 0x100000001b3;
  return digest;
}

std::string hexOf(const void* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    constexpr char digits[] = "0123456789abcdef";
    auto byte = static_cast<const unsigned char*>(bytes)[i];
    text += {digits[byte >> 4], digits[byte & 15]};
  }
  return text;
}

std::string describe(const Object* object) {
  if (object == nullptr) return "null";
  std::string text = object->settings->made;
  for (auto& [key, call] : object->settings->all) text += call;
  uint64_t digest = digestOf(text);
  return std::string(objectTypes[object->type].name) + " " + hexOf(&digest, sizeof digest);
}

class Recorded {
 public:
  Recorded(const LibraryEntry& entry, uint64_t* words) : entry(entry), words(words) {}

  uint64_t run() {
    std::string text = std::string(entry.symbol) + "(";
    for (size_t i = 0; i < entry.arguments.size(); ++i) {
      if (i != 0) text += ", ";
      text += argument(i);
    }
    if (entry.does == Does::create) text += variables();
    write(text + ")");
    if (entry.does == Does::create && !held()) return 1;
    if (isInvalid) return entry.returnsStatus ? 7 : 0;
    waitForStream();
    // The result of a posted call is lost; outputs are the same for each call with the same text.
    for (size_t i = 0; i < entry.arguments.size(); ++i)
      if (isHost(i) && isWritten(entry.arguments[i].what)) fill(i, digestOf(text + std::to_string(i)));
    if (entry.does == Does::recall) std::memcpy(at<void*>(words[1]), &object(0)->members[entry.recalled], entry.arguments[1].bytes);
    if (entry.does == Does::create) create(text);
    if (entry.does == Does::set) set(text);
    if (entry.does == Does::destroy && object(0) != nullptr) end(*object(0));
    return entry.returnsStatus ? 0 : digestOf(text) & 0xffff;
  }

 private:
  Object* object(size_t i) const { return at<Object*>(words[i]); }
  uint64_t bytes(size_t i) const {
    auto& argument = entry.arguments[i];
    uint64_t scale = argument.typedBy == TypedBy::object && words[argument.type] != 0
                         ? object(argument.type)->members[static_cast<size_t>(Member::scaleType)] : 0;
    return pointedBytes(entry, i, std::span(words, entry.arguments.size()), scale);
  }
  uint32_t mode() const {
    bool isThere = entry.modeObject != noArgument && words[entry.modeObject] != 0 &&
                   entry.arguments[entry.modeObject].what == Argument::object;
    return 1u << (isThere ? object(entry.modeObject)->members[static_cast<size_t>(Member::pointerMode)] & 7 : 0);
  }
  bool isHost(size_t i) const {
    auto& argument = entry.arguments[i];
    return (isRead(argument.what) || isWritten(argument.what)) && words[i] != 0 && (argument.hostModes & mode()) != 0;
  }
  bool isUnused(size_t i) const { return (entry.arguments[i].unusedModes & mode()) != 0; }

  // Addresses by their offset in a page, handles by a description of their object.
  std::string argument(size_t i) {
    auto& it = entry.arguments[i];
    uint64_t word = words[i];
    if (it.what == Argument::value) {
      int64_t number = it.bytes == 4 ? int64_t{static_cast<int32_t>(word)} : static_cast<int64_t>(word);
      isInvalid |= number == -77;
      return std::to_string(number);
    }
    if (it.what == Argument::object) check(object(i), it.objectType);
    if (it.what == Argument::object) return entry.does == Does::set && i == 0 ? objectTypes[it.objectType].name : describe(object(i));
    if (it.what == Argument::made || it.what == Argument::place) return "made";
    if (it.what == Argument::stream) return word == 0 ? "null stream" : "stream";
    if (word == 0 || isUnused(i)) return "null";
    if (!isHost(i)) {
      uint64_t inPage = word & 0xfff;
      return "device " + hexOf(&inPage, 2);
    }
    if (!isRead(it.what)) return "out " + std::to_string(bytes(i));
    for (auto& note : entry.notes)
      if (note.holdsObject && note.from == i && static_cast<uint32_t>(words[note.condition]) == note.value) {
        uint64_t held;
        std::memcpy(&held, at<const void*>(word), sizeof held);
        check(at<Object*>(held), note.objectType);
        return "holds " + describe(at<Object*>(held));
      }
    std::string data = hexOf(at<const void*>(word), bytes(i));
    // Bytes that are an address in the program's memory.
    if (bytes(i) == 8 && data.substr(10) != "000000") return "address";
    return "in " + data;
  }

  // The environment variables that decide the results of NVIDIA's library with a handle; here also recorded for descriptors.
  std::string variables() const {
    std::string text;
    for (size_t i = 0; i < entry.arguments.size(); ++i) {
      if (entry.arguments[i].what != Argument::made && entry.arguments[i].what != Argument::place) continue;
      for (const char* name : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG"})
        if (const char* value = std::getenv(name)) text += std::string(" ") + name + "=" + value;
    }
    return text;
  }

  void check(const Object* object, uint8_t wanted) const {
    if (object != nullptr && !takes(entry, wanted, static_cast<uint8_t>(object->type))) std::abort();
  }

  void fill(size_t i, uint64_t digest) {
    auto* to = at<unsigned char*>(words[i]);
    for (size_t k = 0; k < bytes(i); ++k) {
      digest = digest * 6364136223846793005 + 1442695040888963407;
      to[k] = static_cast<unsigned char>(digest >> 56);
    }
  }

  void create(const std::string& text) {
    static std::mutex mutex;  // each GPU has its own thread
    std::lock_guard lock(mutex);
    for (size_t i = 0; i < entry.arguments.size(); ++i) {
      auto& it = entry.arguments[i];
      if (it.what != Argument::made && it.what != Argument::place) continue;
      // Kept until the process ends, because a program may not destroy them.
      static std::deque<Object> made;
      static std::deque<Settings> settings;
      auto* object = it.what == Argument::place ? at<Object*>(words[i]) : &made.emplace_back();
      *object = Object{it.objectType, {}, &settings.emplace_back(Settings{text, {}})};
      if (usesGpu() && objectTypes[it.objectType].busy) callDriver("cuMemAlloc_v2", &object->memory, size_t{32} << 20);
      note(*object);
      if (it.what == Argument::made) std::memcpy(at<void*>(words[i]), &object, sizeof object);
    }
  }

  static void end(Object& object) {
    if (object.memory != 0) callDriver("cuMemFree_v2", object.memory);
    object.type = ended;
  }

  void set(const std::string& text) {
    std::string key = entry.symbol;
    for (size_t i = 0; i < entry.arguments.size(); ++i)
      if ((entry.keys >> i & 1) != 0) (key += ' ') += std::to_string(words[i]);
    std::erase_if(object(0)->settings->all, [&](auto& each) { return each.first == key; });
    object(0)->settings->all.emplace_back(key, text);
    note(*object(0));
  }

  void note(Object& object) {
    for (auto& note : entry.notes) {
      if (note.holdsObject || (note.condition != noArgument && static_cast<uint32_t>(words[note.condition]) != note.value)) continue;
      uint64_t value = words[note.from];
      if (isHost(note.from)) {
        value = 0;
        std::memcpy(&value, at<const void*>(words[note.from]), std::min<size_t>(8, bytes(note.from)));
      }
      object.members[static_cast<size_t>(note.member)] = value;
    }
  }

  // False if library-go does not appear within a minute.
  static bool held() {
    static std::atomic<bool> wasHeld = std::getenv("VGPU_RECORD_HOLD") == nullptr;
    if (wasHeld.exchange(true)) return true;
    std::string folder = std::getenv("VGPU_TEST_RUN"), go = folder + "/library-go";
    close(open((folder + "/library-called").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (int i = 0; i < 60'000 && access(go.c_str(), F_OK) != 0; ++i) usleep(1000);
    return access(go.c_str(), F_OK) == 0;
  }

  // Enqueues work in the stream of the first argument's handle, and waits for it.
  void waitForStream() const {
    bool writes = false;
    for (size_t i = 0; i < entry.arguments.size(); ++i) writes |= isHost(i) && isWritten(entry.arguments[i].what);
    if (!usesGpu() || !writes || entry.does != Does::work || entry.arguments[0].what != Argument::object) return;
    auto* stream = at<void*>(object(0)->members[static_cast<size_t>(Member::stream)]);
    callDriver("cuLaunchHostFunc", stream, static_cast<void (*)(void*)>([](void*) {}), static_cast<void*>(nullptr));
    callDriver("cuStreamSynchronize", stream);
  }

  static bool usesGpu() {
    static const bool does = std::getenv("VGPU_RECORD_GPU") != nullptr;
    return does;
  }

  template <typename... Arguments>
  static void callDriver(const char* name, Arguments... arguments) {
    if (at<int (*)(Arguments...)>(driverEntry(name))(arguments...) != 0) std::abort();
  }

  // Entry of the driver that is loaded already; the emulated one is found by its file's name.
  static uint64_t driverEntry(const char* name) {
    std::string file = "libcuda.so.1";
    auto look = [](dl_phdr_info* each, size_t, void* to) {
      if (std::strstr(each->dlpi_name, "libvgpu-emulator") == nullptr) return 0;
      *static_cast<std::string*>(to) = each->dlpi_name;
      return 1;
    };
    dl_iterate_phdr(look, &file);
    void* driver = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
    void* found = driver == nullptr ? nullptr : dlsym(driver, name);
    if (found == nullptr) std::abort();
    return std::bit_cast<uint64_t>(found);
  }

  static void write(const std::string& line) {
    static const int file = [] {
      const char* path = std::getenv("VGPU_RECORD");
      return path == nullptr ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    }();
    std::string text = line + "\n";
    if (file >= 0 && ::write(file, text.data(), text.size()) < 0) std::abort();
  }

  static constexpr uint64_t ended = noArgument;  // the type of an object
  const LibraryEntry& entry;
  uint64_t* const words;
  bool isInvalid = false;
};

}  // namespace

extern "C" uint64_t cuVgpuCallLibrary(unsigned place, uint64_t* words) { return Recorded(libraryEntries[place], words).run(); }
