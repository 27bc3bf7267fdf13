// Decides when the rounds of a migration end. As long as the program changes less than the streams can send in the same time, each round
// leaves less to be sent. The program is held when the rest can be sent in a part of the permitted downtime, or does not shrink any more.
//
// For rounds that follow each other immediately. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::migrate {

// The part of the downtime for copying; the rest is for quiescing, files, objects and the handover.
constexpr double shareOfCopying = 0.25;

class CutOver {
 public:
  static constexpr unsigned mostRounds = 30;

  // `downtime`: how many seconds the program may be held.
  explicit CutOver(double downtime) : downtime(downtime) {}

  // Call it before each round, with the number of bytes that the target lacks. Returns true if the program is to be held instead of another
  // round.
  bool isDue(uint64_t bytes);
  // Call it after each round, with the bytes that it has sent.
  void noteRound(uint64_t bytes, double seconds);

  // The seconds to send the bytes of the last isDue(), at the speed of the last round. Nothing before the first round.
  std::optional<double> expectedSeconds() const;
  // The name of the next round, for people: "round 2 (would be held for 0.310 s)".
  std::string phase() const;

 private:
  const double downtime;
  unsigned rounds = 0;
  uint64_t left = 0;
  double rate = 0;  // bytes per second
};

}  // namespace vgpu::migrate
