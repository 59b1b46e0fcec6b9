// SPDX-License-Identifier: Apache-2.0
// bench_networks_cpu, bench_networks_cuda: trains a network on batches, and says as JSON how long
// they took, without the burn-in. Images are noise, another for each batch, made on the device; or
// for "mnist", which needs --data DIRECTORY, pictures read from two files batch by batch.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>

#include "bench/common/arguments.hpp"
#include "bench/common/statistics.hpp"
#include "bench/common/times.hpp"
#include "bench/networks/digits.hpp"
#include "bench/networks/elements.hpp"
#include "bench/networks/shapes.hpp"

namespace berth::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr float kRate = 0.001F, kRateOfDigits = 0.02F;

struct Options {
  std::string network = "alexnet", data;
  uint64_t batches = 0, burn_in = 10, batch_size = 0;  // 0: what is usual for the network
  uint64_t threads = allowed_processor_count();
};

Result<Options> read_options(int argc, char** argv) {
  Options options;
  Flag network{.name = "network", .text = &options.network};
  for (const NetworkShape& shape : network_shapes()) network.choices.push_back(shape.name);
  TRY(parse(argc, argv,
            {network,
             {.name = "data", .text = &options.data},
             {.name = "batches", .number = &options.batches, .lowest = 1, .highest = 1'000'000},
             {.name = "burn-in", .number = &options.burn_in, .lowest = 0, .highest = 1'000'000},
             {.name = "batch-size",
              .number = &options.batch_size,
              .lowest = 1,
              .highest = Network::kMostImages},
             {.name = "threads", .number = &options.threads, .lowest = 1, .highest = 1024}}));
  if ((options.network == "mnist") == options.data.empty()) {
    return make_error(Kind::usage, "--data: the directory of digits, for mnist and no other");
  }
  const NetworkShape& shape = network_shape(options.network);
  if (options.batches == 0) options.batches = shape.usual_batches;
  if (options.batch_size == 0) options.batch_size = shape.usual_batch;
  return options;
}

/// What a network is trained with.
class Batches {
 public:
  static Result<Batches> make(const Options& options, Device& device, const Network& network) {
    Batches batches(device, network, network_shape(options.network).classes);
    if (!options.data.empty()) batches.digits_ = TRY(Digits::open(options.data));
    return batches;
  }

  Result<void> load(uint64_t number) {
    const Maps& maps = network_.input().maps;
    if (digits_) {
      TRY(digits_->read(number, maps.images, pixels_.data(), labels_.data()));
      device_.upload(pixels_.data(), network_.input().value, pixels_.size());
    } else {
      for (size_t image = 0; image < labels_.size(); ++image) {
        labels_[image] = static_cast<float>((number + image * 7) % static_cast<uint64_t>(classes_));
      }
      device_.each(1, maps.count(),
                   FillWithNoise{network_.input().value, 1, static_cast<uint32_t>(number)});
    }
    device_.upload(labels_.data(), network_.labels(), labels_.size());
    return {};
  }

 private:
  Batches(Device& device, const Network& network, int classes)
      : device_(device),
        network_(network),
        classes_(classes),
        pixels_(static_cast<size_t>(network.input().maps.count())),
        labels_(static_cast<size_t>(network.input().maps.images)) {}

  Device& device_;
  const Network& network_;
  int classes_;
  std::optional<Digits> digits_;
  std::vector<float> pixels_, labels_;
};

struct Outcome {
  std::vector<double> seconds;  // of each batch after the burn-in
  double total = 0;
  double first_loss = 0, last_loss = 0;
};

Result<Outcome> train(const Options& options, Network& network, Batches& batches) {
  float rate = options.data.empty() ? kRate : kRateOfDigits;
  Outcome outcome;
  outcome.seconds.reserve(options.batches);
  TRY(batches.load(0));
  outcome.first_loss = network.loss();
  Clock::time_point begin;
  for (uint64_t number = 0; number < options.burn_in + options.batches; ++number) {
    auto started = Clock::now();
    if (number == options.burn_in) begin = started;
    TRY(batches.load(number));
    network.step(rate);
    if (number < options.burn_in) continue;
    outcome.seconds.push_back(std::chrono::duration<double>(Clock::now() - started).count());
  }
  outcome.total = std::chrono::duration<double>(Clock::now() - begin).count();
  TRY(batches.load(0));
  outcome.last_loss = network.loss();
  return outcome;
}

Result<void> run(int argc, char** argv) {
  auto begin = Clock::now();
  Options options = TRY(read_options(argc, argv));
  const NetworkShape& shape = network_shape(options.network);
  Device device(options.threads);
  Network network(device, {.channels = shape.channels,
                           .images = static_cast<int>(options.batch_size),
                           .height = shape.side,
                           .width = shape.side});
  network.finish(shape.build(network));
  Batches batches = TRY(Batches::make(options, device, network));
  Outcome outcome = TRY(train(options, network, batches));
  if (!std::isfinite(outcome.first_loss + outcome.last_loss)) {
    return make_error(Kind::bug, "the loss is not a number any more");
  }
  const std::vector<double>& seconds = outcome.seconds;
  fmt::print(R"({{"program": "networks", "device": "{}", "network": "{}", "batch_size": {}, )"
             R"("threads": {}, "processors": [{}], "burn_in": {}, "batches": {}, )"
             R"("total_s": {:.6f}, "mean_s": {:.9f}, "deviation_s": {:.9f}, "median_s": {:.9f}, )"
             R"("p99_s": {:.9f}, "slowest_s": {:.9f}, "first_loss": {:.6g}, "last_loss": {:.6g}, )"
             R"({}}})"
             "\n",
             Device::kName, options.network, options.batch_size, options.threads,
             fmt::join(allowed_processors(), ", "), options.burn_in, options.batches, outcome.total,
             mean(seconds), deviation(seconds), quantile(seconds, 0.5), quantile(seconds, 0.99),
             quantile(seconds, 1), outcome.first_loss, outcome.last_loss, times_as_json(begin));
  return {};
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  using namespace berth::bench;
  return exit_status(fmt::format("bench_networks_{}", Device::kName),
                     [=] { return run(argc, argv); });
}
