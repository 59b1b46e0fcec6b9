0 berth
