import type { Context } from "../context";

/** Has the trace tree go along with the cursor. */
export async function followCursor({ follower }: Context): Promise<void> {
  await follower.setFollowing(true);
}

/** Leaves the trace tree where it is. */
export async function unfollowCursor({ follower }: Context): Promise<void> {
  await follower.setFollowing(false);
}
