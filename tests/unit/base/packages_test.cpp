// SPDX-License-Identifier: Apache-2.0
#include "base/packages.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Packages, have_the_name_and_the_command_of_the_machine_at_hand) {
  EXPECT_EQ(install_command("uidmap", "PRETTY_NAME=\"Debian\"\nID=debian\n"), "apt install uidmap");
  EXPECT_EQ(install_command("uidmap", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"),
            "apt install uidmap");
  EXPECT_EQ(install_command("uidmap", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"),
            "dnf install shadow-utils");
  EXPECT_EQ(install_command("docker.io", "ID=fedora"), "dnf install moby-engine");
  EXPECT_EQ(install_command("passt", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\""),
            "zypper install passt");
  EXPECT_EQ(install_command("uidmap", "ID=arch"), "pacman -S shadow");
}

TEST(Packages, of_an_unknown_machine_are_named_alone) {
  for (const char* text :
       {"", "ID=", "ID=slackware\n", "ID_LIKE=\n", "NAME=debian\n", "XID=debian"}) {
    EXPECT_EQ(install_command("uidmap", text), "install the package uidmap") << text;
  }
}

}  // namespace
}  // namespace berth
