#include "tools/vgpuctl/machine-monitor.h"

#include "tools/common/reason.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

constexpr auto replyLimit = 20 * kj::SECONDS;
constexpr size_t longestLine = size_t{1} << 20;

kj::Exception errorOf(kj::Exception::Type type, const std::string& text) {
  return kj::Exception(type, __FILE__, __LINE__, kj::heapString(text.data(), text.size()));
}

}  // namespace

MachineMonitor::MachineMonitor(kj::AsyncIoContext& io, const std::string& address) : io(io), address(address) {
  connect();
  reading = read().eagerlyEvaluate([this](kj::Exception&& exception) { end(reasonOf(exception)); });
  auto late = io.provider->getTimer().afterDelay(replyLimit / 4).then([this]() -> json {
    fail(this->address + " sends no greeting: it is not a QMP socket, or it serves another client now (QMP serves one at a time)");
  });
  json greeted = greeting.promise.exclusiveJoin(kj::mv(late)).wait(io.waitScope);
  run("qmp_capabilities");
}

void MachineMonitor::connect() {
  auto caught = kj::runCatchingExceptions([&] {
    if (address.starts_with("tcp:")) {
      auto parsed = io.provider->getNetwork().parseAddress(address.substr(4).c_str()).wait(io.waitScope);
      stream = parsed->connect().wait(io.waitScope);
    } else {
      auto made = io.lowLevelProvider->wrapUnixSocketFd(connectUnix(address));
      passing = made.get();
      stream = kj::mv(made);
    }
  });
  KJ_IF_MAYBE (exception, caught) {
    fail("no QEMU answers at " + address + ": " + reasonOf(*exception) +
         ". Start it with -qmp unix:PATH,server=on,wait=off, and name that path");
  }
}

kj::Promise<void> MachineMonitor::read() {
  return stream->tryRead(buffer, 1, sizeof buffer).then([this](size_t got) -> kj::Promise<void> {
    if (got == 0) {
      end("QEMU has closed the connection");
      return kj::READY_NOW;
    }
    received.append(buffer, got);
    size_t from = 0;
    for (size_t to; (to = received.find('\n', from)) != std::string::npos; from = to + 1)
      take(std::string_view(received).substr(from, to - from));
    received.erase(0, from);
    if (received.size() > longestLine) fail("it sends lines of more than a megabyte, so it is not a QMP socket");
    return read();
  });
}

void MachineMonitor::take(std::string_view line) {
  json message = json::parse(line, nullptr, false);
  if (!message.is_object()) fail("it does not send JSON, so it is not a QMP socket");
  if (message.contains("QMP")) return greeting.fulfiller->fulfill(kj::mv(message));
  if (message.contains("event")) {
    KJ_IF_MAYBE (waiter, eventWaiter) {
      if ((*waiter)->isWaiting()) return (*waiter)->fulfill(kj::mv(message));
    }
    events.push_back(std::move(message));
    return;
  }
  const json number = message.value("id", json());
  auto found = number.is_number_unsigned() ? waiting.find(number.get<uint64_t>()) : waiting.end();
  if (found == waiting.end()) return;  // a reply to a command that was given up
  Reply reply = kj::mv(found->second);
  waiting.erase(found);
  if (!message.contains("error")) return reply->fulfill(message.value("return", json::object()));
  const json error = message["error"];
  const std::string why = error.is_object() ? error.value("desc", "no reason") : "no reason";
  reply->reject(errorOf(kj::Exception::Type::FAILED, "QEMU: " + why));
}

void MachineMonitor::end(const std::string& why) {
  ended = why;
  auto lost = [&] { return errorOf(kj::Exception::Type::DISCONNECTED, address + ": " + why); };
  if (greeting.fulfiller->isWaiting()) greeting.fulfiller->reject(lost());
  for (auto& [number, reply] : waiting) reply->reject(lost());
  waiting.clear();
  KJ_IF_MAYBE (waiter, eventWaiter) (*waiter)->reject(lost());
  eventWaiter = nullptr;
}

kj::Promise<json> MachineMonitor::execute(const std::string& command, json arguments) {
  return send(command, std::move(arguments), -1);
}

bool MachineMonitor::giveFile(const std::string& name, const kj::AutoCloseFd& file) {
  if (passing == nullptr) return false;
  send("getfd", {{"fdname", name}}, file.get()).wait(io.waitScope);
  return true;
}

kj::Promise<json> MachineMonitor::send(const std::string& command, json arguments, int file) {
  if (ended) return errorOf(kj::Exception::Type::DISCONNECTED, address + ": " + *ended);
  const uint64_t number = ++lastCommand;
  auto line = kj::heapString((json{{"execute", command}, {"arguments", arguments}, {"id", number}}.dump() + "\n").c_str());
  auto reply = kj::newPromiseAndFulfiller<json>();
  waiting[number] = kj::mv(reply.fulfiller);
  writing = writing
                .then([this, file, line = kj::mv(line)]() mutable {
                  auto files = kj::heapArray<int>({file});
                  auto written = file < 0 ? stream->write(line.begin(), line.size())
                                          : passing->writeWithFds(line.asBytes(), nullptr, files.asPtr());
                  return written.attach(kj::mv(line), kj::mv(files));
                })
                .eagerlyEvaluate([](kj::Exception&&) {});  // the reading side notices the connection's end
  auto late = io.provider->getTimer().afterDelay(replyLimit).then([this, command]() -> json {
    fail("QEMU at " + address + " does not answer to " + command);
  });
  return reply.promise.exclusiveJoin(kj::mv(late));
}

json MachineMonitor::run(const std::string& command, json arguments) {
  return execute(command, std::move(arguments)).wait(io.waitScope);
}

kj::Promise<json> MachineMonitor::nextEvent() {
  if (!events.empty()) {
    json event = std::move(events.front());
    events.pop_front();
    return event;
  }
  if (ended) return errorOf(kj::Exception::Type::DISCONNECTED, address + ": " + *ended);
  auto next = kj::newPromiseAndFulfiller<json>();
  eventWaiter = kj::mv(next.fulfiller);
  return kj::mv(next.promise);
}

}  // namespace vgpu::ctl
