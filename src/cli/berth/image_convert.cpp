// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/work_display.hpp"
#include "engine/image/maintenance.hpp"

namespace berth::cli {
namespace {

struct ImageConvertOptions {
  std::string to;
  bool quiet = false;
};

FlagTable image_convert_flags(ImageConvertOptions& o) {
  return {
      {"quiet", 'q', "", "Print nothing", &o.quiet},
      choice_flag("to", "FORMAT", "Format to convert to: directory or erofs", &o.to,
                  {"directory", "erofs"}),
  };
}

std::string text_of(const image::ConvertReport& report, const std::string& format) {
  std::string text;
  for (const std::string& image : report.shared) {
    text += "Shares converted layers: " + escape_controls(image) + "\n";
  }
  return text + "Converted " + std::to_string(report.layers.size()) + " layers to " + format +
         (report.present > 0 ? ", " + std::to_string(report.present) + " were so already\n" : "\n");
}

Result<int> run_image_convert(Session& session, const ImageConvertOptions& o, Arguments arguments) {
  if (o.to.empty()) {
    return make_error(Kind::usage, "--to FORMAT is required: directory or erofs",
                      "berth image convert --to erofs " + arguments.front());
  }
  WorkDisplay display(session, "Converting", o.quiet);
  auto report = TRY(engine::convert_layers(session.context, o.to, arguments, display.progress()));
  display.finish();
  if (!o.quiet) print(session, text_of(report, o.to));
  return 0;
}

}  // namespace

const Verb image_convert_verb{
    .text = {.name = "image convert",
             .arguments = "IMAGE [IMAGE...]",
             .summary = "Change the format in which the layers of images are stored",
             .example = "berth image convert --to erofs debian:12",
             .complete = Complete::image},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(image_convert_flags, run_image_convert); },
};

}  // namespace berth::cli
