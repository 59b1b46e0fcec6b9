125 berth run --network bridge debian
