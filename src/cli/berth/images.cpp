// SPDX-License-Identifier: Apache-2.0
#include "engine/image/images.hpp"

#include "cli/berth/common.hpp"
#include "cli/berth/show/container_words.hpp"
#include "cli/berth/show/list_rows.hpp"

namespace berth::cli {
namespace {

struct ImagesOptions {
  bool all = false;
  bool digests = false;
  bool no_trunc = false;
  bool quiet = false;
  std::vector<engine::Filter> filters;
  std::string format;
};

FlagTable images_flags(ImagesOptions& o) {
  return {
      {"all", 'a', "", "No effect: all images are always listed", &o.all},
      {"digests", 0, "", "Show digests", &o.digests},
      filter_flag(o.filters),
      template_flag(o.format),
      {"no-trunc", 0, "", "Do not truncate ids", &o.no_trunc},
      {"quiet", 'q', "", "Show only ids", &o.quiet},
  };
}

constexpr ListKind kImages{
    .fields = kImageFields,
    .table = "{{.Repository}}\t{{.Tag}}\t{{.ID}}\t{{.CreatedSince}}\t{{.Size}}",
    .raw =
        "repository: {{.Repository}}\ntag: {{.Tag}}\nimage_id: {{.ID}}\n"
        "created_at: {{.CreatedAt}}\nvirtual_size: {{.Size}}\n",
    .raw_quiet = "image_id: {{.ID}}",
};

constexpr ListKind kImagesWithDigests{
    .fields = kImageFields,
    .table = "{{.Repository}}\t{{.Tag}}\t{{.Digest}}\t{{.ID}}\t{{.CreatedSince}}\t{{.Size}}",
    .raw =
        "repository: {{.Repository}}\ntag: {{.Tag}}\ndigest: {{.Digest}}\nimage_id: {{.ID}}\n"
        "created_at: {{.CreatedAt}}\nvirtual_size: {{.Size}}\n",
    .raw_quiet = "image_id: {{.ID}}",
};

Result<int> run_images(Session& session, const ImagesOptions& o, Arguments arguments) {
  // -q prints ids, whatever the default format is.
  const std::string format =
      o.quiet ? o.format : format_or_usual(session, o.format, "imagesFormat");
  ListKind kind = o.digests ? kImagesWithDigests : kImages;
  // A column that only users with additional stores see.
  const std::string with_stores = std::string(kind.table) + "\t{{.ReadOnly}}";
  if (!session.context.paths.additional_stores.empty()) kind.table = with_stores;
  Listing listing = TRY(Listing::make(kind, {.text = format, .quiet = o.quiet}));
  engine::ImageQuery query;
  if (!arguments.empty()) query.repository = arguments[0];
  query.filters = engine::Filters(o.filters);
  query.now = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  std::vector<ListRow> rows;
  for (const auto& image : TRY(engine::query_images(session.context, query))) {
    rows.push_back(image_row(image, o.no_trunc ? Ids::whole : Ids::shortened));
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

}  // namespace

const Verb images_verb{
    .text = {.name = "images",
             .arguments = "[REPOSITORY[:TAG]]",
             .summary = "List images",
             .example = "berth images --filter dangling=true -q",
             .complete = Complete::image},
    .arity = {0, 1},
    .command = [] { return make_command(images_flags, run_images); },
};

}  // namespace berth::cli
