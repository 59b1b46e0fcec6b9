// SPDX-License-Identifier: Apache-2.0
#include "engine/pull/pull.hpp"

#include <optional>
#include <utility>

#include "engine/image/store.hpp"
#include "engine/site/rules.hpp"
#include "image/store.hpp"

namespace berth::engine {
namespace {

Result<void> check_rules(const Context& context, const PullWish& wish) {
  if (wish.container != nullptr) return check_registry(context, *wish.container, nullptr);
  return check_registry(context, wish.request.reference, nullptr);
}

/// Judges the image by its files, now that the store has them.
Result<void> judge_files(const Context& context, const PullWish& wish,
                         const std::string& reference) {
  image::Store store = TRY(open_store(context));
  // A local image may have been named by its id.
  auto image = TRY(wish.request.local ? store.find_image(wish.request.reference)
                                      : store.find_image_named(reference));
  if (!image) return {};  // another process has removed it
  if (wish.request.strict) return judge_present(context, wish.gpus, *image, true);
  bool starts = wish.container != nullptr;
  return judge_unpacked(context, wish.gpus, *image, starts ? Remarks::refuse : Remarks::warn);
}

}  // namespace

Result<Pulled> pull(const Context& context, PullWish wish, const Progress& progress) {
  // The rules were checked when the store pulled its image.
  if (!wish.request.local) {
    TRY(check_rules(context, wish));
    judge_by_this_node(context, wish.gpus, wish.request);
  }
  image::TransferResult result = TRY(transfer(context, wish.request, progress));
  if (!wish.request.force) TRY(judge_files(context, wish, result.reference));
  bool downloaded = result.status == "downloaded";
  return Pulled{std::move(result.reference), std::move(result.digest), downloaded};
}

}  // namespace berth::engine
