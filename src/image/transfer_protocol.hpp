// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/result.hpp"
#include "facts/facts.hpp"
#include "image/published_facts.hpp"
#include "image/registry_access.hpp"
#include "match/verdict.hpp"
#include "node/profile.hpp"
#include "oci/image_spec.hpp"

/// What `berth` and its child `berth-transfer` say to each other: one request as a JSON object on
/// the child's stdin (up to its end of file), events as JSON lines on its stdout, the last of which
/// is the result or the error. The child exits 0 after a result and 1 after an error. It prints
/// nothing for people.
///
/// `additional_stores` are roots of stores that are only read, as Store::open() takes them.
namespace berth::image {

/// Whom the files of an unpacked layer belong to.
/// full: to the ids of the archive. single: to the caller, who has no other id to give them to.
enum class Ownership { full, single };
constexpr EnumNames<Ownership, 2> names_of(std::type_identity<Ownership>) {
  return {{{Ownership::full, "full"}, {Ownership::single, "single"}}};
}

/// Where an opaque directory is marked: trusted.overlay.* (real root) or user.overlay.* (inside a
/// user namespace, mounted with userxattr).
enum class OverlayXattr { trusted, user };
constexpr EnumNames<OverlayXattr, 2> names_of(std::type_identity<OverlayXattr>) {
  return {{{OverlayXattr::trusted, "trusted"}, {OverlayXattr::user, "user"}}};
}

/// What an unpacked layer lies in the store as: a directory with its files, or one read-only EROFS
/// image, which root alone can mount.
enum class LayerFormat { directory, erofs };
constexpr EnumNames<LayerFormat, 2> names_of(std::type_identity<LayerFormat>) {
  return {{{LayerFormat::directory, "directory"}, {LayerFormat::erofs, "erofs"}}};
}

/// Which facts published beside an image are believed.
struct FactsTrust {
  bool fetch = true;              ///< else none, and no request is made for them
  bool signed_only = false;       ///< only what one of `keys` has signed
  std::vector<std::string> keys;  ///< public keys, PEM; records of runs need one of them
};

/// result: reference, digest, image_id, status ("downloaded", "up_to_date").
struct PullRequest {
  std::string verb = "pull";
  std::string root;
  std::vector<std::string> additional_stores;
  std::string reference;                ///< as the user typed it
  std::optional<std::string> platform;  ///< "linux/amd64", "linux/arm/v7"; none: this machine's
  RegistryAccess access;
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  LayerFormat layer_format = LayerFormat::directory;
  bool quiet = false;  ///< no layer events
  /// What the entries of an index are judged against; none: the first of the platform is taken.
  std::optional<node::Profile> node;
  match::Job job;
  bool force = false;   ///< also what is judged not to run
  bool strict = false;  ///< nothing that runs with a remark
  FactsTrust facts;
  bool scan = true;            ///< the files, while they are unpacked
  bool keep_blobs = false;     ///< the packed layers, too
  uint64_t memory_budget = 0;  ///< bytes of memory for layers on their way; 0: 512 MiB
  /// Unpacks what the store already holds under this reference and asks a registry for nothing but
  /// layers that it does not hold packed: for an image whose layers were unpacked for another
  /// ownership. status: "up_to_date".
  bool local = false;
};

/// Finds out what a reference means, and fetches no layer.
/// result: reference, digest, and entries or document.
struct ResolveRequest {
  std::string verb = "resolve";
  std::string reference;
  RegistryAccess access;
  FactsTrust facts;
  bool as_document = false;  ///< what the registry has under the name, byte by byte, and no more
};

/// Publishes beside an image what was found in its files, and how it has run. Every image is one
/// that the reference means at the registry now. A key signs only what it or one of the trusted
/// ones has signed before: records of runs that nobody has are then left out.
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

/// Finds repositories whose name contains a text; a registry with a search of its own looks at
/// descriptions too.
/// result: found, at most `limit`.
struct SearchRequest {
  std::string verb = "search";
  std::string registry;  ///< "docker.io", "localhost:5000"
  std::string text;      ///< of several words each has to be there; empty: every repository
  uint32_t limit = 0;
  std::optional<uint64_t> stars;  ///< at least so many
  std::optional<bool> official;   ///< only those that are, or are not
  std::optional<bool> automated;
  RegistryAccess access;
};

/// result: tags, the first `limit` that the registry lists.
struct TagsRequest {
  std::string verb = "tags";
  std::string reference;  ///< its tag has no meaning
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
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  LayerFormat layer_format = LayerFormat::directory;
  bool quiet = false;
};

/// result: size (bytes written).
struct SaveRequest {
  std::string verb = "save";
  std::string root;
  std::vector<std::string> additional_stores;
  RegistryAccess access;  ///< for layers that are in the store only unpacked
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
  /// Seconds since 1970: when the image was made, and its latest files, so that the same directory
  /// gives the same digests. A tar stays as it is. None: now, and the files' own times.
  std::optional<uint64_t> source_date;
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  LayerFormat layer_format = LayerFormat::directory;
};

/// Writes what an inherited descriptor is open at, and all that is below it, as a tar. Somebody may
/// change the tree meanwhile: nothing but what is reached by handles from there is read.
struct ArchiveRequest {
  std::string verb = "archive";
  std::string tree;    ///< "/dev/fd/N", of O_PATH
  std::string name;    ///< of the first member; empty: what is in the directory, without itself
  std::string output;  ///< file; an inherited descriptor is "/dev/fd/N"
  /// A squashfs in the place of a tar: `output` is then a regular file. The time in its own
  /// block, and of what was changed later, is `epoch`, seconds since 1970; 0: nothing is later.
  bool squashfs = false;
  uint64_t epoch = 0;
};

/// Whom the files of an extracted tar belong to.
enum class Owners { archive, root };
constexpr EnumNames<Owners, 2> names_of(std::type_identity<Owners>) {
  return {{{Owners::archive, "archive"}, {Owners::root, "root"}}};
}
/// What a container's files may be outside of it: set-id bits and devices stay behind.
enum class Trust { inside, outside };
constexpr EnumNames<Trust, 2> names_of(std::type_identity<Trust>) {
  return {{{Trust::inside, "inside"}, {Trust::outside, "outside"}}};
}

/// Makes the members of a tar below a directory that somebody may change meanwhile.
struct ExtractRequest {
  std::string verb = "extract";
  std::string directory;  ///< "/dev/fd/N"
  std::string top;        ///< "/dev/fd/N" of the root that links are followed in; empty: none are
  std::string path;       ///< of the directory below `top`
  std::string input;      ///< "/dev/fd/N"
  bool packed = false;    ///< the tar may be compressed
  Owners owners = Owners::root;
  Trust trust = Trust::inside;
};

/// Makes an image of a container's own layer and the image below it.
/// result: reference, image_id.
struct CommitRequest {
  std::string verb = "commit";
  std::string root;
  std::vector<std::string> additional_stores;
  std::string base;                   ///< "sha256:…" of the image's config
  std::string tree;                   ///< "/dev/fd/N" of the upper directory
  std::vector<std::string> left_out;  ///< files of it that are no part of the image: "etc/x"
  std::string loader_cache;       ///< "/dev/fd/N" of the bytes of etc/ld.so.cache; empty: its own
  std::string reference;          ///< empty: the image gets no name
  oci::ContainerDefaults config;  ///< of the container
  std::vector<std::string> changes;  ///< "CMD […]", "ENV K=V", …
  std::string author;
  std::string message;
  std::string created_by;               ///< of the history entry
  std::optional<uint64_t> source_date;  ///< as of ImportRequest
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  LayerFormat layer_format = LayerFormat::directory;
};

/// An image of an index that is published.
struct PublishedEntry {
  std::string image;                       ///< a name in the store: it is sent
  std::optional<oci::Descriptor> present;  ///< instead: the repository has it already
  std::map<std::string, std::string> annotations;
};

/// Writes one flat index of images, in the order of `entries`, after everything that it names.
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

/// A directory as a builder is given it.
struct BuildContext {
  std::string directory;    ///< absolute
  std::string ignore_file;  ///< absolute; patterns as .dockerignore has them. Empty: none
};

/// What names contents: of a tree by its paths, modes, links and bytes (not by times and owners),
/// and of texts.
/// result: digests, of the contexts and then of the texts.
struct DigestRequest {
  std::string verb = "digest";
  std::vector<BuildContext> contexts;
  std::vector<std::string> texts;
};

/// Whether a key can sign, before work that ends in a signature.
/// result: nothing; an error says what is wrong with it.
struct CheckKeyRequest {
  std::string verb = "check-key";
  std::string sign_key;  ///< PEM of a private key
};

/// Looks at everything in the store.
/// result: check.
struct CheckRequest {
  std::string verb = "check";
  std::string root;
  std::vector<std::string> additional_stores;
  bool repair = false;  ///< remove what is damaged, unless a container uses it
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  LayerFormat layer_format = LayerFormat::directory;
};

using TransferRequest =
    std::variant<PullRequest, ResolveRequest, PublishFactsRequest, PushRequest, LoginRequest,
                 LogoutRequest, SearchRequest, TagsRequest, LoadRequest, SaveRequest, ImportRequest,
                 ArchiveRequest, ExtractRequest, CommitRequest, PublishRequest, DigestRequest,
                 CheckKeyRequest, CheckRequest>;

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

/// Progress of one layer; at most 20 a second and layer, the first and the last of a phase always.
struct LayerEvent {
  std::string id;  ///< 12 digits of the compressed digest
  LayerPhase phase = LayerPhase::waiting;
  uint64_t done = 0;   ///< compressed bytes
  uint64_t total = 0;  ///< compressed bytes; 0: unknown
};

/// A line for people who watch a pipe, e.g. "latest: Pulling from library/ubuntu".
struct StatusEvent {
  std::string text;
};

/// Something was ignored or replaced, in words.
struct WarningEvent {
  std::string text;
};

/// An image that a reference means, or one of several.
struct ResolvedEntry {
  oci::Descriptor descriptor;
  std::optional<oci::ContainerDefaults> config;  ///< what is known of it
  std::optional<facts::ImageFacts> found;        ///< published
  std::vector<match::RunRecord> runs;            ///< published
  bool runs_believed = false;
};

/// A repository as its registry describes it. The texts are a stranger's.
struct FoundRepository {
  std::string name;         ///< as pull takes it: "ubuntu", "localhost:5000/team/tool"
  std::string description;  ///< empty, and what follows 0 and false, where the registry keeps none
  uint64_t stars = 0;
  bool official = false;
  bool automated = false;
};

/// Something that a check has found.
struct CheckFinding {
  std::string kind;  ///< "record", "blob", "layer", "permissions", "container", "leftover", "note"
  std::string object;               ///< as a path below the root of the store
  std::string text;                 ///< "'usr/bin/a' is missing"
  std::vector<std::string> images;  ///< canonical references, or ids, of those that have it
  std::string done;                 ///< what --repair did, or why it did not
  bool damage = false;              ///< false: harmless, it takes room or time alone
};
struct CheckReport {
  std::vector<CheckFinding> findings;  ///< the first 500
  uint64_t damaged = 0;                ///< objects
  uint64_t records = 0;                ///< that were looked at
  uint64_t blobs = 0;
  uint64_t layers = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
};

/// The end of a verb that succeeded; which members are set is said at each request.
struct TransferResult {
  std::string reference;  ///< canonical: "docker.io/library/ubuntu:latest"
  std::string digest;     ///< "sha256:…" of what the registry named: index or manifest
  std::string image_id;   ///< "sha256:…" of the config
  std::string status;
  uint64_t size = 0;
  std::vector<std::string> loaded;
  std::vector<ResolvedEntry> entries;  ///< in the order of the index
  std::string document;                ///< an index or a manifest, JSON
  std::vector<Digest> digests;
  std::optional<CheckReport> check;
  std::vector<FoundRepository> found;
  std::vector<std::string> tags;
};

using TransferEvent = std::variant<LayerEvent, StatusEvent, WarningEvent, TransferResult, Error>;

/// One JSON object on one line, with its newline.
std::string to_json(const TransferEvent& event);
/// Errors: corrupt (not one of the events: the child is of another version, or broken).
Result<TransferEvent> parse_event(std::string_view line);

}  // namespace berth::image
