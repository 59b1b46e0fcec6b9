0 berth history --help
