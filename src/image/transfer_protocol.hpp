// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/names.hpp"
#include "base/result.hpp"
#include "facts/facts.hpp"
#include "image/published_facts.hpp"
#include "image/registry_access.hpp"
#include "match/verdict.hpp"
#include "node/profile.hpp"
#include "oci/image_spec.hpp"

/// The protocol between `berth` and its child `berth-transfer`: one request as a JSON object on the
/// child's stdin (up to end of file), events as JSON lines on its stdout. The last event is the
/// result or the error. The child exits 0 after a result and 1 after an error. The child prints
/// nothing for people.
///
/// `additional_stores` are roots of read-only stores, as for Store::open().
namespace berth::image {

/// The owners of an unpacked layer's files. full: the ids of the archive. single: the id of the
/// caller, which has no other ids.
enum class Ownership { full, single };
constexpr EnumNames<Ownership, 2> names_of(std::type_identity<Ownership>) {
  return {{{Ownership::full, "full"}, {Ownership::single, "single"}}};
}

/// The xattr that marks an opaque directory: trusted.overlay.* (real root) or user.overlay.*
/// (inside a user namespace, mounted with userxattr).
enum class OverlayXattr { trusted, user };
constexpr EnumNames<OverlayXattr, 2> names_of(std::type_identity<OverlayXattr>) {
  return {{{OverlayXattr::trusted, "trusted"}, {OverlayXattr::user, "user"}}};
}

/// The form of an unpacked layer: a directory with its files, or one read-only EROFS image, which
/// only root can mount.
enum class LayerFormat { directory, erofs };
constexpr EnumNames<LayerFormat, 2> names_of(std::type_identity<LayerFormat>) {
  return {{{LayerFormat::directory, "directory"}, {LayerFormat::erofs, "erofs"}}};
}

/// How a layer is unpacked. Directories with different owners or overlay marks are separate, so
/// that a user who gets new subordinate ids never mounts a directory with the old ones. All users
/// share an EROFS layer.
struct LayerFlavor {
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  /// For layers made from now on; existing ones are used as they are.
  LayerFormat format = LayerFormat::directory;
};

/// Which of the facts that are published with an image are trusted.
struct FactsTrust {
  bool fetch = true;              ///< false: none, and no request is made for them
  bool signed_only = false;       ///< only facts that one of `keys` has signed
  std::vector<std::string> keys;  ///< public keys, PEM; records of runs need their signature
};

/// result: reference, digest, image_id, status ("downloaded", "up_to_date").
struct PullRequest {
  std::string verb = "pull";
  std::string root;
  std::vector<std::string> additional_stores;
  std::string reference;                ///< as the user typed it
  std::optional<std::string> platform;  ///< "linux/amd64", "linux/arm/v7"; none: this machine's
  RegistryAccess access;
  LayerFlavor flavor;
  bool quiet = false;  ///< no layer events
  /// The profile by which an entry of an index is chosen; none: the first entry of the platform.
  std::optional<node::Profile> node;
  match::Job job;
  bool force = false;   ///< accept also an image that is judged not to run
  bool strict = false;  ///< refuse an image that runs with a remark
  FactsTrust facts;
  bool scan = true;            ///< scan the files while unpacking
  bool keep_blobs = false;     ///< keep the compressed layers, too
  uint64_t memory_budget = 0;  ///< bytes of memory for layers in transfer; 0: 512 MiB
  /// Unpacks the stored image of this reference, and asks a registry only for layers that the store
  /// does not have compressed. For an image with layers that were unpacked for another ownership.
  /// status: "up_to_date".
  bool local = false;
};

/// Resolves a reference, and fetches no layer.
/// result: reference, digest, and entries or document.
struct ResolveRequest {
  std::string verb = "resolve";
  std::string reference;
  RegistryAccess access;
  FactsTrust facts;
  bool as_document = false;  ///< only the registry's document, byte by byte
};

/// Publishes facts about the files of images, and records of their runs, in the repository of the
/// images. Every image has to be one that the reference means at the registry now. A key signs
/// earlier facts and records only if they have its own signature or that of a trusted key; others
/// are left out.
/// result: reference, digest (of the artifact), size (of the document), status ("attached",
/// "up_to_date").
struct PublishFactsRequest {
  std::string verb = "publish-facts";
  std::string reference;
  RegistryAccess access;
  std::vector<PublishedImage> images;
  std::string sign_key;                   ///< PEM of a private key; empty: unsigned
  std::vector<std::string> trusted_keys;  ///< public keys, PEM: of the policy
};

/// result: reference, digest, size (of the manifest).
struct PushRequest {
  std::string verb = "push";
  std::string root;
  std::vector<std::string> additional_stores;
  std::string reference;
  RegistryAccess access;
  bool quiet = false;
};

/// result: reference (the registry), status ("Login Succeeded").
struct LoginRequest {
  std::string verb = "login";
  std::string registry;  ///< empty: docker.io
  std::string username;
  std::string password;
  RegistryAccess access;
};

/// result: reference (the registry), status ("Removing login credentials for X",
/// "Not logged in to X").
struct LogoutRequest {
  std::string verb = "logout";
  std::string registry;  ///< empty: docker.io
  RegistryAccess access;
};

/// Finds repositories with a string in their names; a registry that has a search searches
/// descriptions, too. result: found, at most `limit`.
struct SearchRequest {
  std::string verb = "search";
  std::string registry;  ///< "docker.io", "localhost:5000"
  std::string text;      ///< words, which all have to occur; empty: every repository
  uint32_t limit = 0;
  std::optional<uint64_t> stars;  ///< at least so many
  std::optional<bool> official;   ///< true: only official ones, false: only others
  std::optional<bool> automated;
  RegistryAccess access;
};

/// result: tags, the first `limit` tags that the registry lists.
struct TagsRequest {
  std::string verb = "tags";
  std::string reference;  ///< its tag is ignored
  uint32_t limit = 0;
  RegistryAccess access;
};

/// result: loaded ("Loaded image: ref" each), image_id of the last.
struct LoadRequest {
  std::string verb = "load";
  std::string root;
  std::vector<std::string> additional_stores;
  std::string input;  ///< archive or OCI layout directory; an inherited descriptor is "/dev/fd/N"
  std::optional<std::string> platform;
  LayerFlavor flavor;
  bool quiet = false;
};

/// result: size (bytes written).
struct SaveRequest {
  std::string verb = "save";
  std::string root;
  std::vector<std::string> additional_stores;
  RegistryAccess access;  ///< for layers that the store has only unpacked
  std::vector<std::string> references;
  std::string output;  ///< file; an inherited descriptor is "/dev/fd/N"
  std::string
      format;  ///< "archive" (OCI layout and docker-archive in one tar), "oci" (a directory)
};

/// result: reference, image_id.
struct ImportRequest {
  std::string verb = "import";
  std::string root;
  std::vector<std::string> additional_stores;
  std::string source;     ///< directory, tar (any compression), squashfs or SIF; "/dev/fd/N"
  std::string reference;  ///< empty: the image gets no name
  std::vector<std::string> changes;  ///< "CMD […]", "ENV K=V", … as docker import --change
  std::string message;               ///< comment of the history entry
  std::optional<std::string> platform;
  /// Seconds since 1970: the creation time of the image and the upper limit of file times, so that
  /// the same directory gives the same digests. The file times of a tar are unchanged. None: now,
  /// and the files' own times.
  std::optional<uint64_t> source_date;
  LayerFlavor flavor;
};

/// Writes the file or directory of an inherited descriptor as a tar, recursively. Others may change
/// the tree meanwhile, so every file is reached by handles from that descriptor.
struct ArchiveRequest {
  std::string verb = "archive";
  std::string tree;    ///< "/dev/fd/N", opened with O_PATH
  std::string name;    ///< of the first member; empty: only the content of the directory
  std::string output;  ///< file; an inherited descriptor is "/dev/fd/N"
  /// Write a squashfs instead of a tar: `output` is then a regular file. `epoch` is the time in its
  /// superblock and the upper limit of file times, seconds since 1970; 0: no limit.
  bool squashfs = false;
  uint64_t epoch = 0;
};

/// The owners of the files of an extracted tar.
enum class Owners { archive, root };
constexpr EnumNames<Owners, 2> names_of(std::type_identity<Owners>) {
  return {{{Owners::archive, "archive"}, {Owners::root, "root"}}};
}
/// outside: the host, where set-id bits, file capabilities and devices of a container are left out.
enum class Trust { inside, outside };
constexpr EnumNames<Trust, 2> names_of(std::type_identity<Trust>) {
  return {{{Trust::inside, "inside"}, {Trust::outside, "outside"}}};
}

/// Extracts the members of a tar below a directory that others may change meanwhile.
struct ExtractRequest {
  std::string verb = "extract";
  std::string directory;  ///< "/dev/fd/N"
  std::string top;    ///< "/dev/fd/N" of the root in which links are followed; empty: no links are
  std::string path;   ///< of `directory` below `top`
  std::string input;  ///< "/dev/fd/N"
  bool packed = false;  ///< the tar may be compressed
  Owners owners = Owners::root;
  Trust trust = Trust::inside;
};

/// Makes an image from a container's own layer and the image below it.
/// result: reference, image_id.
struct CommitRequest {
  std::string verb = "commit";
  std::string root;
  std::vector<std::string> additional_stores;
  std::string base;                   ///< "sha256:…" of the image's config
  std::string tree;                   ///< "/dev/fd/N" of the upper directory
  std::vector<std::string> left_out;  ///< files of `tree` that are not part of the image: "etc/x"
  std::string loader_cache;          ///< "/dev/fd/N": bytes of etc/ld.so.cache; empty: as in `tree`
  std::string reference;             ///< empty: the image gets no name
  oci::ContainerDefaults config;     ///< of the container
  std::vector<std::string> changes;  ///< "CMD […]", "ENV K=V", …
  std::string author;
  std::string message;
  std::string created_by;               ///< of the history entry
  std::optional<uint64_t> source_date;  ///< as of ImportRequest
  LayerFlavor flavor;
};

/// An image in a published index.
struct PublishedEntry {
  std::string image;                       ///< a name in the store: the image is pushed
  std::optional<oci::Descriptor> present;  ///< or: an image that the repository has
  std::map<std::string, std::string> annotations;
};

/// Writes one flat index of images, in the order of `entries`, after pushing everything that the
/// index names.
/// result: reference, digest, size (of the index), entries.
struct PublishRequest {
  std::string verb = "publish";
  std::string root;
  std::vector<std::string> additional_stores;
  std::string reference;  ///< with a tag
  std::vector<PublishedEntry> entries;
  std::map<std::string, std::string> annotations;  ///< of the index
  std::string sign_key;                            ///< PEM of a private key; empty: unsigned
  std::vector<std::string> trusted_keys;           ///< public keys, PEM: of the policy
  RegistryAccess access;
  bool quiet = false;
};

/// A directory that is passed to a builder.
struct BuildContext {
  std::string directory;    ///< absolute
  std::string ignore_file;  ///< absolute; .dockerignore patterns. Empty: none
};

/// Computes digests of contents: of a tree by its paths, modes, links and bytes (not times and
/// owners), and of texts.
/// result: digests, of the contexts and then of the texts.
struct DigestRequest {
  std::string verb = "digest";
  std::vector<BuildContext> contexts;
  std::vector<std::string> texts;
};

/// Checks that a key can sign, before work that ends in a signature.
/// result: nothing; an error has the reason.
struct CheckKeyRequest {
  std::string verb = "check-key";
  std::string sign_key;  ///< PEM of a private key
};

/// Checks everything in the store.
/// result: check.
struct CheckRequest {
  std::string verb = "check";
  std::string root;
  std::vector<std::string> additional_stores;
  bool repair = false;  ///< remove what is damaged, unless a container uses it
  LayerFlavor flavor;
};

/// Stores identical files of unpacked layers once.
/// result: dedupe.
struct DedupeRequest {
  std::string verb = "dedupe";
  std::string root;
  bool dry_run = false;         ///< only report
  std::vector<Digest> mounted;  ///< diff ids of mounted layers: they count as used
  LayerFlavor flavor;
};

/// Converts the unpacked layers of images to `flavor`.
/// result: convert.
struct ConvertRequest {
  std::string verb = "convert";
  std::string root;
  std::vector<std::string> images;  ///< names or ids
  LayerFlavor flavor;
};

using TransferRequest =
    std::variant<PullRequest, ResolveRequest, PublishFactsRequest, PushRequest, LoginRequest,
                 LogoutRequest, SearchRequest, TagsRequest, LoadRequest, SaveRequest, ImportRequest,
                 ArchiveRequest, ExtractRequest, CommitRequest, PublishRequest, DigestRequest,
                 CheckKeyRequest, CheckRequest, DedupeRequest, ConvertRequest>;

/// One JSON object on one line, with its newline.
std::string to_json(const TransferRequest& request);
/// Errors: usage (not JSON, an unknown verb, a wrong or missing member).
Result<TransferRequest> parse_request(std::string_view text);

enum class LayerPhase { waiting, downloading, verifying, unpacking, uploading, done, exists };
constexpr EnumNames<LayerPhase, 7> names_of(std::type_identity<LayerPhase>) {
  return {{{LayerPhase::waiting, "waiting"},
           {LayerPhase::downloading, "downloading"},
           {LayerPhase::verifying, "verifying"},
           {LayerPhase::unpacking, "unpacking"},
           {LayerPhase::uploading, "uploading"},
           {LayerPhase::done, "done"},
           {LayerPhase::exists, "exists"}}};
}

/// Progress of one layer: at most 20 events a second for each layer. The first and the last event
/// of a phase are always sent.
struct LayerEvent {
  std::string id;  ///< the first 12 hex digits of the digest of the compressed layer
  LayerPhase phase = LayerPhase::waiting;
  uint64_t done = 0;   ///< compressed bytes
  uint64_t total = 0;  ///< compressed bytes; 0: unknown
};

/// A line for people, e.g. "latest: Pulling from library/ubuntu".
struct StatusEvent {
  std::string text;
};

/// A sentence about something that was ignored or replaced.
struct WarningEvent {
  std::string text;
};

/// The image that a reference means, or one of several.
struct ResolvedEntry {
  oci::Descriptor descriptor;
  std::optional<oci::ContainerDefaults> config;  ///< as far as it is known
  std::optional<facts::ImageFacts> found;        ///< published
  std::vector<match::RunRecord> runs;            ///< published
  bool runs_believed = false;                    ///< a trusted key has signed `runs`
};

/// A repository as its registry describes it. The strings are untrusted.
struct FoundRepository {
  std::string name;         ///< as for pull: "ubuntu", "localhost:5000/team/tool"
  std::string description;  ///< empty if the registry has none; the following are then 0 and false
  uint64_t stars = 0;
  bool official = false;
  bool automated = false;
};

/// A finding of a check.
struct CheckFinding {
  std::string kind;  ///< "record", "blob", "layer", "permissions", "container", "leftover", "note"
  std::string object;               ///< as a path below the root of the store
  std::string text;                 ///< "'usr/bin/a' is missing"
  std::vector<std::string> images;  ///< canonical references, or ids, of the affected images
  std::string done;                 ///< the action of --repair, or why there was none
  bool damage = false;              ///< false: harmless, it only takes room or time
};
struct CheckReport {
  std::vector<CheckFinding> findings;  ///< the first 500
  uint64_t damaged = 0;                ///< number of damaged objects
  uint64_t records = 0;                ///< number of examined records
  uint64_t blobs = 0;
  uint64_t layers = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
};

/// The result of a DedupeRequest, or of its dry run.
struct DedupeReport {
  uint64_t layers = 0;      ///< examined layers
  uint64_t files = 0;       ///< examined files
  uint64_t identical = 0;   ///< files merged with another
  uint64_t bytes = 0;       ///< freed on the disk
  uint64_t used = 0;        ///< layers left unchanged because containers use them
  uint64_t unrecorded = 0;  ///< layers without a record, made by an old version
  std::string way;          ///< "blocks" or "links"; empty if nothing is identical
};

/// The result of a ConvertRequest.
struct ConvertReport {
  std::vector<Digest> layers;       ///< diff ids of the converted layers
  uint64_t present = 0;             ///< layers that had the format already
  std::vector<std::string> shared;  ///< other images with one of `layers`
};

/// The result of a successful verb; each request documents which members are set.
struct TransferResult {
  std::string reference;  ///< canonical: "docker.io/library/ubuntu:latest"
  std::string digest;     ///< "sha256:…" of the index or manifest that the registry has
  std::string image_id;   ///< "sha256:…" of the config
  std::string status;
  uint64_t size = 0;
  std::vector<std::string> loaded;
  std::vector<ResolvedEntry> entries;  ///< in the order of the index
  std::string document;                ///< an index or a manifest, JSON
  std::vector<Digest> digests;
  std::optional<CheckReport> check;
  std::optional<DedupeReport> dedupe;
  std::optional<ConvertReport> convert;
  std::vector<FoundRepository> found;
  std::vector<std::string> tags;
};

using TransferEvent = std::variant<LayerEvent, StatusEvent, WarningEvent, TransferResult, Error>;

/// One JSON object on one line, with its newline.
std::string to_json(const TransferEvent& event);
/// Errors: corrupt (not one of the events: the child is of another version, or broken).
Result<TransferEvent> parse_event(std::string_view line);

}  // namespace berth::image
