125 berth frobnicate
