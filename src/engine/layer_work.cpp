// SPDX-License-Identifier: Apache-2.0
#include "engine/layer_work.hpp"

namespace berth::engine {

Result<image::DedupeReport> dedupe_layers(const Context& context, Trial trial,
                                          const Progress& progress) {
  image::DedupeRequest request;
  request.dry_run = trial == Trial::yes;
  image::TransferResult result = TRY(run_layer_work(context, std::move(request), progress));
  return image::parse_dedupe_report(result.status);
}

Result<image::ConvertReport> convert_layers(const Context& context, const std::string& format,
                                            const std::vector<std::string>& images,
                                            const Progress& progress) {
  Context wanted = context;
  wanted.layer_format = format;  // checked where that of a pull is
  image::ConvertRequest request;
  request.images = images;
  image::TransferResult result = TRY(run_layer_work(wanted, std::move(request), progress));
  return image::parse_convert_report(result.status);
}

}  // namespace berth::engine
