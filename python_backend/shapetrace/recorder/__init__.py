"""Records what a program does with torch. The only part of Shapetrace that imports torch."""
