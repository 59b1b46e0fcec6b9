125 berth help run debian
