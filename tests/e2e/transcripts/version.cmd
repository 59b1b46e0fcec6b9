0 berth --version
