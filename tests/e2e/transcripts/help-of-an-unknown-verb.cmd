125 berth help rnu
