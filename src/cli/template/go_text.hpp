// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::cli {

/// Aligns columns separated by tabs, as in docker's lists. A cell ends with a tab. Cells of
/// consecutive lines in the same column get the same width: that of the widest cell and three
/// blanks, at least ten columns. Text after the last tab of a line is not a cell.
/// Source: Go's text/tabwriter with minwidth 10, padding 3, as docker/cli uses it.
std::string align_tabs(std::string_view text);

/// In double quotes, with control characters, quotes and backslashes escaped, as Go's %q.
std::string quote_as_go(std::string_view text);

}  // namespace berth::cli
