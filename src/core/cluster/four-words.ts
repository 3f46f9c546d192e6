// Four words from a secret that two machines share: people compare them to see that nobody sits between.

const words: readonly string[] = `
acorn amber anchor apple april arrow aspen atlas autumn badge bagel bamboo
banjo barley basil beacon beaver berry birch bishop bison blossom bottle branch
brass bread breeze brick bridge bronze brook bucket buffalo butter button cabin
cactus camel candle canoe canyon carbon cargo carpet carrot castle cedar cello
chalk cherry chestnut cider cinder circle citrus clay cliff cloud clover cobalt
cocoa comet compass copper coral cotton coyote crane crater cricket crimson crystal
curtain cypress dahlia daisy dancer dawn delta desert diamond dolphin dragon drum
dusk eagle earth easel echo ember emerald engine falcon feather fern fiddle
field finch flame flint flower flute forest fossil fox garden garlic gazelle
geyser ginger glacier goblet granite grape gravel guitar hammer harbor harp harvest
hazel helmet heron hickory honey hornet horse iceberg indigo iris island ivory
ivy jacket jade jaguar jasmine jelly jewel jungle juniper kayak kettle kitten
koala ladder lagoon lake lantern laurel lava lemon leopard lichen lilac lily
lime linen lion lizard llama lobster lotus lumber lunar magnet mango maple
marble marigold meadow melon mentor meteor mint mirror mitten moose morning moss
mountain mustard nectar needle nickel nutmeg oak oasis ocean olive onyx opal
orange orbit orchard orchid otter oyster paddle palm panda panther papaya parrot
peach peacock pearl pebble pepper piano pigeon pilot pine planet plum pocket
polar pollen pony poplar prairie prism puffin pumpkin quail quartz quilt rabbit
radish rain raven reef ribbon ridge river robin rocket rose ruby saddle
saffron sage salmon sapphire satin scarlet school seal shadow shell silver sparrow
spruce squirrel star stone
`
  .trim()
  .split(/\s+/)

/** Needs at least four bytes in hex; each picks one of 256 words. */
export function fourWords(hex: string): string {
  const picked: string[] = []
  for (let index = 0; index < 4; index++) {
    picked.push(words[Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16)] ?? '')
  }
  return picked.join(' ')
}
