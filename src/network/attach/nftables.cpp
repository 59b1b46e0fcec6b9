// SPDX-License-Identifier: Apache-2.0
#include "network/attach/nftables.hpp"

#include <nftables/libnftables.h>

#include <memory>

#include "base/text.hpp"

namespace berth::network {
namespace {

/// Runs commands and returns the output.
Result<std::string> run(const std::string& words, const std::string& what) {
  std::unique_ptr<nft_ctx, void (*)(nft_ctx*)> context(nft_ctx_new(NFT_CTX_DEFAULT), nft_ctx_free);
  if (context == nullptr) return make_error(Kind::busy, "open libnftables");
  nft_ctx_buffer_error(context.get());
  nft_ctx_buffer_output(context.get());
  nft_ctx_output_set_flags(context.get(), NFT_CTX_OUTPUT_HANDLE);
  if (nft_run_cmd_from_buffer(context.get(), words.c_str()) == 0) {
    const char* printed = nft_ctx_get_output_buffer(context.get());
    return std::string(printed != nullptr ? printed : "");
  }
  const char* said = nft_ctx_get_error_buffer(context.get());
  std::string_view first = split(said != nullptr ? said : "", '\n').front();
  bool denied = first.find("Operation not permitted") != first.npos;
  return make_error(denied ? Kind::denied : Kind::io, what + ": " + escape_controls(trim(first)));
}

}  // namespace

Result<void> apply_rules(const std::string& rules) {
  TRY(run(rules, "set firewall rules"));
  return {};
}

Result<std::string> list_chains() {
  return run("list chains ip\nlist chains inet\n", "list the chains of the firewall");
}

Result<std::string> list_chain(const std::string& name) {
  return run("list chain " + name + "\n", "list chain '" + name + "'");
}

}  // namespace berth::network
