// SPDX-License-Identifier: Apache-2.0
#include "hub/choice.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "node/check.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::hub {
namespace {

using ::testing::HasSubstr;

node::Profile node_of(const std::string& cpu) {
  node::Profile node;
  node.name = "n1";
  node.architecture = "amd64";
  node.cpu.microarchitecture = cpu;
  node::fill(node);
  return node;
}

/// The documents of a registry, by digest.
class Documents {
 public:
  /// An entry of an index that names `bytes`.
  std::string add(const std::string& bytes, std::string_view type, const std::string& more = "") {
    Digest digest = transfer::sha256_of(bytes);
    documents_[digest.text()] = bytes;
    return fmt::format(R"({{"mediaType":"{}","digest":"{}","size":{}{}}})", type, digest.text(),
                       bytes.size(), more);
  }
  transfer::Fetch fetch() {
    return [this](const oci::Descriptor& entry) -> Result<transfer::Document> {
      auto found = documents_.find(entry.digest.text());
      if (found == documents_.end()) return make_error(Kind::not_found, "no such document");
      ++fetched;
      return transfer::Document{found->second, entry.media_type, entry.digest};
    };
  }
  Beside beside() {
    return {fetch(), [this]() -> Result<std::optional<image::PublishedFacts>> { return facts; }};
  }
  int fetched = 0;
  std::optional<image::PublishedFacts> facts;

 private:
  std::map<std::string, std::string> documents_;
};

std::string index_of(const std::string& entries) {
  return fmt::format(R"({{"schemaVersion":2,"mediaType":"{}","manifests":[{}]}})",
                     oci::media_type::kIndex, entries);
}

std::string variant(Documents& documents, const std::string& name, const std::string& axis = "") {
  std::string notes =
      axis.empty() ? "" : fmt::format(R"(,"annotations":{{"dev.berth.variant.cpu":"{}"}})", axis);
  return documents.add(name, oci::media_type::kManifest,
                       R"(,"platform":{"os":"linux","architecture":"amd64"})" + notes);
}

Result<Choice> choose(Documents& documents, const std::string& index, const std::string& cpu) {
  return choose_entry(index, oci::media_type::kIndex, node_of(cpu), {}, documents.beside());
}

std::string chosen(Documents& documents, const std::string& index, const std::string& cpu) {
  auto choice = choose(documents, index, cpu);
  if (!choice.ok()) return "error: " + to_line(choice.error());
  return choice->entry ? choice->entry->digest.text() : "none: " + choice->refusal;
}

std::string digest_of(const std::string& name) {
  return transfer::sha256_of(name).text();
}

TEST(HubChoice, is_the_entry_of_the_node) {
  Documents documents;
  std::string entries = variant(documents, "generic");
  entries += "," + variant(documents, "v4", "x86-64-v4");
  std::string index = index_of(entries);
  EXPECT_EQ(chosen(documents, index, "broadwell"), digest_of("generic"));
  EXPECT_EQ(chosen(documents, index, "skylake_avx512"), digest_of("v4"));
  EXPECT_EQ(documents.fetched, 0);
}

TEST(HubChoice, believes_what_is_published) {
  Documents documents;
  std::string index = index_of(variant(documents, "a") + "," + variant(documents, "b"));
  EXPECT_EQ(chosen(documents, index, "broadwell"), digest_of("a"));
  image::PublishedImage found;
  found.image = transfer::sha256_of("a");
  found.platform = {"arm64", "linux", {}, {}, {}};
  found.config.labels["dev.berth.variant.cpu"] = "x86-64-v4";
  documents.facts.emplace().images.push_back(found);
  EXPECT_EQ(chosen(documents, index, "broadwell"), digest_of("b"));
}

TEST(HubChoice, is_kept_for_a_minute) {
  ChoiceCache cache;
  auto now = ChoiceCache::Clock::now();
  cache.put("a", {std::nullopt, "needs more"}, now);
  EXPECT_EQ(cache.find("a", now)->refusal, "needs more");
  EXPECT_FALSE(cache.find("b", now));
  EXPECT_FALSE(cache.find("a", now + ChoiceCache::kLife));
  for (size_t i = 0; i < 3 * ChoiceCache::kMost; ++i) cache.put(std::to_string(i), {}, now);
  EXPECT_FALSE(cache.find("0", now));
}

TEST(HubChoice, says_why_none_runs) {
  Documents documents;
  std::string index = index_of(variant(documents, "v4", "x86-64-v4"));
  EXPECT_THAT(chosen(documents, index, "broadwell"),
              HasSubstr("of x86-64-v4 (declared); this node is broadwell"));
  EXPECT_EQ(chosen(documents, index_of(""), "broadwell"), "none: it has no entry");
}

TEST(HubChoice, leaves_what_is_no_index) {
  Documents documents;
  std::string manifest = fmt::format(
      R"({{"schemaVersion":2,"mediaType":"{}","config":{{"mediaType":"{}","digest":"{}","size":2}},"layers":[]}})",
      oci::media_type::kManifest, oci::media_type::kConfig, digest_of("x"));
  auto choice = choose_entry(manifest, oci::media_type::kManifest, node_of("broadwell"), {},
                             documents.beside());
  ASSERT_TRUE(choice.ok()) << to_line(choice.error());
  EXPECT_FALSE(choice->entry);
  EXPECT_EQ(choice->refusal, "");
}

TEST(HubChoice, looks_into_indexes_once_and_no_deeper) {
  Documents documents;
  std::string inner = index_of(variant(documents, "v4", "x86-64-v4"));
  std::string entry = documents.add(inner, oci::media_type::kIndex);
  std::string outer = index_of(entry + "," + entry + "," + variant(documents, "generic"));
  EXPECT_EQ(chosen(documents, outer, "skylake_avx512"), digest_of("v4"));
  EXPECT_EQ(documents.fetched, 1);

  std::string deeper = index_of(documents.add(outer, oci::media_type::kIndex));
  EXPECT_THAT(chosen(documents, deeper, "broadwell"), HasSubstr("indexes inside indexes"));
}

TEST(HubChoice, refuses_what_is_too_much_or_not_what_it_says) {
  Documents documents;
  std::string entry = variant(documents, "generic");
  std::string entries = entry;
  for (int i = 0; i < 10'000; ++i) entries += "," + entry;
  EXPECT_THAT(chosen(documents, index_of(entries), "broadwell"), HasSubstr("1024"));
  EXPECT_THAT(chosen(documents, "{", "broadwell"), HasSubstr("error: "));
  std::string both = fmt::format(
      R"({{"schemaVersion":2,"manifests":[{}],"config":{},"layers":[]}})", entry, entry);
  EXPECT_THAT(chosen(documents, both, "broadwell"), HasSubstr("error: "));
}

}  // namespace
}  // namespace berth::hub
