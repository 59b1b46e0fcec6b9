125 berth run --rm=maybe debian
