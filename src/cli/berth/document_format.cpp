// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/document_format.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"

namespace berth::cli {

DocumentShape docker_documents() {
  static constexpr std::string_view kMaps[] = {
      "Annotations",  "Data",  "DriverOpts", "ExposedPorts", "Labels", "Networks", "Options",
      "PortBindings", "Ports", "StorageOpt", "Sysctls",      "Tmpfs",  "Volumes",
  };
  static constexpr std::string_view kLists[] = {
      "Aliases",
      "Binds",
      "BlkioDeviceReadBps",
      "BlkioDeviceReadIOps",
      "BlkioDeviceWriteBps",
      "BlkioDeviceWriteIOps",
      "BlkioWeightDevice",
      "CapAdd",
      "CapDrop",
      "Cmd",
      "DeviceCgroupRules",
      "DeviceIDs",
      "DeviceRequests",
      "Devices",
      "Dns",
      "DnsOptions",
      "DnsSearch",
      "Entrypoint",
      "Env",
      "ExecIDs",
      "ExtraHosts",
      "GroupAdd",
      "Layers",
      "Links",
      "Log",
      "MaskedPaths",
      "Mounts",
      "OnBuild",
      "ReadonlyPaths",
      "RepoDigests",
      "RepoTags",
      "SecondaryIPAddresses",
      "SecondaryIPv6Addresses",
      "SecurityOpt",
      "SecurityOptions",
      "Shell",
      "Ulimits",
      "VolumesFrom",
      "Warnings",
  };
  static constexpr std::string_view kAbsent[] = {
      "Annotations", "ExposedPorts", "Health",      "Healthcheck", "Init",    "OnBuild", "Shell",
      "SizeRootFs",  "SizeRw",       "StopTimeout", "StorageOpt",  "Sysctls", "Tmpfs",
  };
  static constexpr std::string_view kBlank[] = {"StopSignal", "Variant", "OsVersion"};
  return {kMaps, kLists, kAbsent, kBlank};
}

Result<DocumentFormat> DocumentFormat::make(const std::string& text) {
  DocumentFormat format;
  if (text == "json") return format;
  if (text.find("{{") == text.npos) {
    return make_error(Kind::usage, quote(text) +
                                       " is not a format: expected json or a template such "
                                       "as '{{.Id}}'");
  }
  format.template_ = TRY(Template::parse(text));
  return format;
}

Result<std::optional<DocumentFormat>> DocumentFormat::make_if_given(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return TRY(make(text));
}

Result<std::string> DocumentFormat::text(const json::Value& document) const {
  if (!template_) return json::dump(document);
  return template_->execute({document, docker_documents()});
}

Result<int> print_document(Session& session, const std::optional<DocumentFormat>& format,
                           const json::Value& document, const std::string& text) {
  if (!format) {
    print(session, text);
  } else if (format->is_json()) {
    print_json(session, document);
  } else {
    print(session, TRY(format->text(document)) + "\n");
  }
  return 0;
}

}  // namespace berth::cli
