125 berth runx
