1 berth logs nothing
