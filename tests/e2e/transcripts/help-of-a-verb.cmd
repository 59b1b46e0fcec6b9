0 berth help tag
