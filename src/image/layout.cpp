// SPDX-License-Identifier: Apache-2.0
#include "image/layout.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/text.hpp"
#include "base/time.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"

namespace berth::image {

// Field tables and conversions to strings, found by argument-dependent look-up.
std::string to_json_text(const Reference& reference) {
  return reference.canonical();
}
Result<Reference> from_json_text(std::string_view text, std::type_identity<Reference>) {
  return Reference::parse(text);
}
void fields(auto& v, ImageRecord& r) {
  v.always("reference", r.reference);
  v.required("digest", r.target);
  v.required("manifest", r.manifest);
  v.required("config", r.config);
  v.optional("created_at", r.created_at);
  v.optional("sources", r.sources);
}

namespace {

constexpr std::string_view kSuffix = ".json";
constexpr size_t kMaxFileName = 255;  // NAME_MAX
constexpr size_t kMaxRecordBytes = 64 << 10;
constexpr size_t kReplaceSuffix = 17;  // replace_file()'s suffix: ".tmp-" and 12 digits

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '.' || c == '_' || c == '-';
    encoded += plain ? std::string(1, c) : "%" + to_hex(std::string_view(&c, 1));
  }
  return encoded;
}

std::string file_name(const std::optional<Reference>& reference, const Digest& manifest) {
  std::string name = reference ? reference->canonical() : "@" + manifest.text();
  return "images/" + percent_encode(name) + std::string(kSuffix);
}

Result<void> write_record(const sys::Fd& root, const ImageRecord& record) {
  std::string path = file_name(record.reference, record.manifest);
  if (path.size() - std::string_view("images/").size() + kReplaceSuffix > kMaxFileName) {
    return make_error(Kind::usage, "keep image " + quote(record.reference->familiar()) +
                                       ": the name is too long for a file name");
  }
  mode_t readers = TRY(readers_of(root, "images"));
  TRY(sys::replace_file(root, path, json::write(record, 2) + "\n", 0600 | readers));
  // The caller's umask must not make files unreadable in a store that other users may read.
  if (readers == 0) return {};
  sys::Fd record_file = TRY(sys::hold_entry(root, path));
  return sys::change_mode(record_file, 0600 | readers, path);
}

}  // namespace

void add_sources(const std::vector<Reference>& more, std::vector<Reference>& sources) {
  for (const Reference& source : more) {
    bool known = std::ranges::find(sources, source) != sources.end();
    if (!known) sources.push_back(source);
  }
}

bool same_record(const ImageRecord& a, const ImageRecord& b) {
  return a.reference == b.reference && (a.reference || a.manifest == b.manifest);
}

Result<std::vector<ImageRecord>> read_records(const sys::Fd& root,
                                              std::vector<std::string>& damaged) {
  std::vector<ImageRecord> records;
  for (const auto& name : TRY(sys::list_directory(root, "images"))) {
    if (!name.ends_with(kSuffix)) continue;  // an incomplete record, or a foreign file
    auto text = TRY(sys::read_file_if_exists(root, "images/" + name, kMaxRecordBytes));
    if (!text) continue;  // just removed
    auto record = json::read<ImageRecord>(*text, name);
    if (record.ok()) {
      records.push_back(std::move(*record));
    } else {
      damaged.push_back(name);
    }
  }
  return records;
}

Result<std::optional<ImageRecord>> read_record(const sys::Fd& root, const Reference& reference) {
  std::string path = file_name(reference, {});
  auto text = sys::read_file_if_exists(root, path, kMaxRecordBytes);
  if (!text.ok()) {
    if (text.error().sys_errno == ENAMETOOLONG) return std::optional<ImageRecord>();
    return std::move(text).error();
  }
  if (!*text) return std::optional<ImageRecord>();
  return std::optional<ImageRecord>(TRY(json::read<ImageRecord>(**text, path)));
}

Result<void> put_record(const sys::Fd& root, const ImageRecord& record) {
  std::vector<std::string> damaged;
  auto records = TRY(read_records(root, damaged));
  auto named = [&](const Digest& manifest) {
    return std::ranges::any_of(records, [&](const ImageRecord& other) {
      return other.reference && other.manifest == manifest && !same_record(other, record);
    });
  };
  if (!record.reference && named(record.manifest)) return {};
  // Keeps the sources that are known, so that loading an image again does not lose them.
  ImageRecord whole = record;
  for (const auto& other : records) {
    if (other.manifest == record.manifest) add_sources(other.sources, whole.sources);
  }
  for (const auto& loser : records) {
    bool loses_name = record.reference && same_record(loser, record);
    if (loses_name && loser.manifest != record.manifest && !named(loser.manifest)) {
      ImageRecord nameless = loser;
      nameless.reference.reset();
      TRY(write_record(root, nameless));
    }
  }
  TRY(write_record(root, whole));
  if (record.reference) {
    ImageRecord nameless = record;
    nameless.reference.reset();
    TRY(unlink_record(root, nameless));
  }
  return {};
}

Result<void> unlink_record(const sys::Fd& root, const ImageRecord& record) {
  return sys::remove_entry(root, file_name(record.reference, record.manifest));
}

std::string timestamp_now() {
  return format_time(std::time(nullptr));
}

}  // namespace berth::image
