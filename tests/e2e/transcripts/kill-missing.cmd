1 berth kill nothing
