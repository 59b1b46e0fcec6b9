0 berth unshare --help
