125 berth run --nmae x debian
