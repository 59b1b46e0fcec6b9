125 berth run --interact debian
