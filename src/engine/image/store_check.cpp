// SPDX-License-Identifier: Apache-2.0
#include "engine/image/store_check.hpp"

#include "base/text.hpp"
#include "engine/image/mounted.hpp"
#include "engine/image/transfer.hpp"

namespace berth::engine {

Result<image::CheckReport> check_store(const Context& context, Repair repair) {
  if (repair == Repair::yes) {
    for (const MountedImage& mounted : TRY(list_mounted_images())) {
      return make_error(Kind::busy,
                        "repair the store: image " + quote(mounted.image) + " is mounted at " +
                            quote(mounted.directory),
                        "berth image unmount " + mounted.directory);
    }
  }
  image::CheckRequest request;
  request.repair = repair == Repair::yes;
  image::TransferResult result = TRY(transfer(context, std::move(request), {}));
  if (result.check) return std::move(*result.check);
  return make_error(Kind::corrupt, "berth-transfer has another version");
}

}  // namespace berth::engine
