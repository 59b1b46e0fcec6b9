125 berth run --tmpfs relative debian
