125 berth run --network warp debian
